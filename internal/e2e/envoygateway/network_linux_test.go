//go:build e2e

package envoygateway

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// host is a network namespace. Processes that it starts and connections that it
// opens are in there.
type host struct {
	ip   string
	path string      // of the namespace
	run  chan func() // run on its thread
}

// newHost makes a namespace with loopback alone. It goes with the test.
func newHost(t *testing.T, ip string) *host {
	t.Helper()
	h := &host{ip: ip, run: make(chan func())}
	entered := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and nothing
		// else may ever run in that namespace.
		runtime.LockOSThread()
		if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
			entered <- err
			return
		}
		h.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", syscall.Getpid(), syscall.Gettid())
		entered <- command("ip", "link", "set", "lo", "up")
		for f := range h.run {
			f()
		}
	}()
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(h.run) })
	return h
}

// do runs f on the thread of the namespace.
func (h *host) do(f func() error) error {
	done := make(chan error)
	h.run <- func() { done <- f() }
	return <-done
}

// connect wires two namespaces.
func connect(t *testing.T, a, b *host) {
	t.Helper()
	err := a.do(func() error {
		return command("ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", b.path)
	})
	for _, h := range []*host{a, b} {
		if err == nil {
			err = h.do(func() error {
				if err := command("ip", "addr", "add", h.ip+"/24", "dev", "wire"); err != nil {
					return err
				}
				return command("ip", "link", "set", "wire", "up")
			})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// dial opens a connection in the namespace.
func (h *host) dial(ctx context.Context, addr string) (conn net.Conn, err error) {
	err = h.do(func() error {
		conn, err = (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp4", addr)
		return err
	})
	return conn, err
}

// command runs a program and returns an error with its output.
func command(argv ...string) error {
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
