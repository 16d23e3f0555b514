//go:build !unix

package osdir

import "os"

// lockFile does nothing where there are no such locks.
func lockFile(*os.File) error { return nil }

// noFollow has no effect here.
const noFollow = 0
