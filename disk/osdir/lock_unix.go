//go:build unix

package osdir

import (
	"os"
	"syscall"
)

// lockFile acquires an exclusive lock without waiting. It ends with the
// process.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// noFollow makes opening a symbolic link fail.
const noFollow = syscall.O_NOFOLLOW
