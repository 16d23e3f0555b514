//go:build unix

package journal

import (
	"os"
	"syscall"
)

// lockFile takes an exclusive lock without waiting. It goes with the process.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
