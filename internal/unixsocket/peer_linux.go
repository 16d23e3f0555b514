package unixsocket

import (
	"net"
	"syscall"
)

// PeerUID returns the user of the process at the other end of a unix socket, as
// the kernel knows it; ok is false for other connections.
func PeerUID(c net.Conn) (uid uint32, ok bool) {
	u, isUnix := c.(*net.UnixConn)
	if !isUnix {
		return 0, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			uid, ok = cred.Uid, true
		}
	})
	return uid, ok && err == nil
}
