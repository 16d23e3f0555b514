package osdir

import (
	"errors"
	"os"
	"syscall"
)

// syncData waits until the written bytes and the length of the file are on
// disk. The times of the file would cost a second write.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
