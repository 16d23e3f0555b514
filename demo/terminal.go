//go:build linux || darwin

package demo

import (
	"os"
	"syscall"
	"unsafe"
)

// TerminalRows returns how many rows the terminal has that a file is, and
// false when it is none.
func TerminalRows(f *os.File) (rows int, ok bool) {
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.rows), errno == 0
}
