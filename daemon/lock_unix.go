//go:build unix

package daemon

import (
	"os"
	"syscall"
)

// lockFile locks a file exclusively, without waiting. The lock ends with the
// process.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
