// Package unixsocket opens unix sockets with a mode, which selects their users.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// errNoSocket is the error of a path that exists and is not a socket.
var errNoSocket = errors.New("exists and is not a socket: remove it or give another path")

// Listen opens a unix socket with a mode, and removes a stale one. The file
// never has a wider mode, not even before Listen returns. It is removed when
// the listener is closed.
func Listen(path string, mode fs.FileMode) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	lis, err := open(path, mode)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode.Perm()); err != nil {
		lis.Close()
		return nil, fmt.Errorf("set the mode of the socket: %w", err)
	}
	return lis, nil
}

// open opens a new socket. Its mode may lack permissions of the wanted one, and
// on Linux it has no others.
func open(path string, mode fs.FileMode) (net.Listener, error) {
	// Linux creates the file with the mode of the descriptor, less the umask.
	// Other systems refuse this, and the umask alone holds until Listen sets
	// it.
	narrow := func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), uint32(mode.Perm())) })
	}
	lc := net.ListenConfig{Control: narrow}
	return lc.Listen(context.Background(), "unix", path)
}

// ListenPrivate opens a unix socket of mode 0600 in a new folder of the
// temporary files, which nobody else can enter. Closing the listener removes
// both.
func ListenPrivate() (net.Listener, error) {
	dir, err := os.MkdirTemp("", "rld-admin-") // with mode 0700
	if err != nil {
		return nil, err
	}
	lis, err := Listen(filepath.Join(dir, "admin.sock"), 0o600)
	if err != nil {
		os.Remove(dir)
		return nil, err
	}
	return &private{lis, dir}, nil
}

// private is a listener in a folder of its own.
type private struct {
	net.Listener
	dir string
}

// Close closes the listener and removes the folder.
func (p *private) Close() error {
	err := p.Listener.Close()
	os.Remove(p.dir)
	return err
}

// removeStale removes a socket that a killed process left, which no process
// answers on. It removes nothing else.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // missing or unreadable: Listen reports it
	}
	if info.Mode()&os.ModeSocket == 0 {
		return errNoSocket
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return nil
	}
	os.Remove(path) // Listen reports a failure
	return nil
}
