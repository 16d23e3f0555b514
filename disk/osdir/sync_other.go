//go:build !linux

package osdir

import "os"

// syncData waits until the written bytes are on disk.
func syncData(f *os.File) error { return f.Sync() }
