//go:build unix

package connlimit

import "syscall"

// OpenFiles returns how many files the process may have open. Go raises the
// soft limit to the hard one when the process starts.
func OpenFiles() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return most
	}
	return uint64(l.Cur) // signed on some systems
}
