//go:build !unix

package daemon

import "os"

// lockFile does nothing where there are no such locks.
func lockFile(*os.File) error { return nil }
