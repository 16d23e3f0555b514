package unixsocket_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/georld/rld/internal/unixsocket"
)

// TestListenMode opens sockets under two umasks. Nobody else can connect before
// the mode is set, either.
func TestListenMode(t *testing.T) {
	for _, umask := range []int{0, 0o077} {
		for _, mode := range []fs.FileMode{0o600, 0o660, 0o666} {
			t.Run(fmt.Sprintf("%04o under %04o", mode, umask), func(t *testing.T) {
				defer syscall.Umask(syscall.Umask(umask))
				path := filepath.Join(t.TempDir(), "s")
				if runtime.GOOS == "linux" {
					lis, err := unixsocket.Open(path, mode)
					if err != nil {
						t.Fatal(err)
					}
					info, err := os.Stat(path)
					if err != nil || info.Mode().Perm() != mode&^fs.FileMode(umask) {
						t.Errorf("at first: mode %v, error %v", info.Mode(), err)
					}
					lis.Close()
				}
				lis, err := unixsocket.Listen(path, mode)
				if err != nil {
					t.Fatal(err)
				}
				info, err := os.Stat(path)
				if err != nil || info.Mode().Perm() != mode {
					t.Errorf("mode %v, error %v", info.Mode(), err)
				}
				lis.Close()
				if _, err := os.Stat(path); err == nil {
					t.Error("the file is left after Close")
				}
			})
		}
	}
}

// TestListenReplacesAStaleSocket keeps a socket that answers, and what is no
// socket.
func TestListenReplacesAStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	lis, err := unixsocket.Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unixsocket.Listen(path, 0o600); err == nil {
		t.Error("a socket in use was taken")
	}
	lis.(*net.UnixListener).SetUnlinkOnClose(false)
	lis.Close()
	if lis, err = unixsocket.Listen(path, 0o600); err != nil {
		t.Fatalf("after a crash: %v", err)
	}
	lis.Close()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := unixsocket.Listen(path, 0o600); err == nil {
		t.Error("a file was taken")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "x" {
		t.Errorf("the file was changed: %q, %v", b, err)
	}
}
