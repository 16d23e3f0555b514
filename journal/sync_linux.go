package journal

import (
	"errors"
	"os"
	"syscall"
)

// syncData waits until what was written is on disk, with its length but
// without the times of the file, which costs a second write.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
