//go:build e2e

package e2e

import (
	"cmp"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"
)

// attacks are floods of a listener, by name.
var attacks = map[string]func(a *attack){
	"valid calls, to compare": func(a *attack) { a.valid(4) },
	"50,000 silent streams on 50 connections": func(a *attack) {
		a.hold(50, append(http2Begin(), http2Calls(0, 1_000, "CheckStream", false)...))
	},
	"19,800 silent streams on 200 connections": func(a *attack) {
		a.hold(200, append(http2Begin(), http2Calls(0, 99, "CheckStream", false)...))
	},
	"10,000 calls without a message on 100 connections": func(a *attack) {
		a.hold(100, append(http2Begin(), http2Calls(0, 100, "Check", false)...))
	},
	"10,000 idle connections of gRPC":   func(a *attack) { a.hold(10_000, http2Begin()) },
	"10,000 idle connections of HTTP":   func(a *attack) { a.hold(10_000, nil) },
	"rapid resets on 4 connections":     func(a *attack) { a.rapid(4) },
	"5,000 silent connections of peers": func(a *attack) { a.hold(5_000, nil) },
}

// attackEnv names the attack of this process, and attackAddr its listener.
const (
	attackEnv  = "RLD_E2E_ATTACK"
	attackAddr = "RLD_E2E_ATTACK_ADDR"
)

// TestAttacker attacks until its input ends. It is the process of
// attackFromElsewhere.
func TestAttacker(t *testing.T) {
	begin := attacks[os.Getenv(attackEnv)]
	if begin == nil {
		t.Skip("for other tests")
	}
	a := newAttack(t, cmp.Or(os.Getenv(attackAddr), nobody(t)))
	go begin(a)
	_, _ = io.Copy(io.Discard, os.Stdin) // until its parent stops it
	a.stop()
}

// nobody returns the address of a listener of this process, which accepts
// everything and answers nothing.
func nobody(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	go func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }() // until the attacker closes it
		}
	}()
	return lis.Addr().String()
}

// attackFromElsewhere begins an attack of a process that has the processors
// which nobody else wants, as if it were on another machine. Without an address
// it attacks a listener of its own, which shows what the attack itself takes
// from others.
func attackFromElsewhere(t *testing.T, name, addr string) (stop func()) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "nice", "-n", "19", os.Args[0], "-test.run=^TestAttacker$")
	c.Env = append(os.Environ(), attackEnv+"="+name, attackAddr+"="+addr)
	c.SysProcAttr = dieWithParent()
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("the attack %q: %v", name, err)
		}
	}
}

// attack opens connections to one listener from an address of its own, and
// keeps them.
type attack struct {
	t    *testing.T
	addr string
	mu   sync.Mutex
	open []net.Conn
	done chan struct{} // closed at the end
}

func newAttack(t *testing.T, addr string) *attack {
	return &attack{t: t, addr: addr, done: make(chan struct{})}
}

// dial opens a connection and reads from it until it ends. It returns nil where
// the daemon does not take one.
func (a *attack) dial(first []byte) net.Conn {
	d := net.Dialer{Timeout: 2 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := d.Dial("tcp", a.addr)
	if err != nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = append(a.open, conn)
	go func() {
		_, _ = conn.Write(first) // the daemon may have closed it
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
	}()
	return conn
}

// hold opens n connections that each send some bytes.
func (a *attack) hold(n int, first []byte) {
	for range n {
		select {
		case <-a.done:
			return
		default:
			a.dial(first)
		}
	}
}

func (a *attack) stop() {
	close(a.done)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.open {
		c.Close()
	}
}

// http2Frame returns a frame of HTTP/2.
func http2Frame(kind, flags byte, call uint32, payload []byte) []byte {
	n := len(payload)
	return append([]byte{
		byte(n >> 16), byte(n >> 8), byte(n), kind, flags, byte(call >> 24), byte(call >> 16), byte(call >> 8), byte(call),
	}, payload...)
}

// http2Begin returns the first bytes of a client of HTTP/2.
func http2Begin() []byte {
	return append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), http2Frame(4, 0, 0, nil)...)
}

// http2Message returns a part of a message of a call, in frames.
func http2Message(call uint32, size int, part []byte) []byte {
	part = append([]byte{0, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)}, part...)
	var out []byte
	for piece := range slices.Chunk(part, 16<<10) {
		out = append(out, http2Frame(0, 0, call, piece)...)
	}
	return out
}

// http2Calls returns the headers of calls without a message, from a number on,
// with some headers more, each followed by its cancellation if so wanted.
func http2Calls(from, n int, method string, cancelled bool, more ...[2]string) []byte {
	var block strings.Builder
	e := hpack.NewEncoder(&block)
	for _, f := range append([][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", "/rld.v1.RateLimiter/" + method},
		{":authority", "test"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	}, more...) {
		_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}) // in no table
	}
	var out []byte
	for i := from; i < from+n; i++ {
		call := uint32(2*i + 1)
		out = append(out, http2Frame(1, 4, call, []byte(block.String()))...)
		if cancelled {
			out = append(out, http2Frame(3, 0, call, []byte{0, 0, 0, 8})...)
		}
	}
	return out
}

// rapid cancels calls as fast as it can on n connections, and dials anew
// whenever one is closed.
func (a *attack) rapid(n int) {
	for range n {
		go func() {
			var conn net.Conn
			for from := 0; ; {
				select {
				case <-a.done:
					return
				default:
				}
				var begin []byte
				if conn == nil {
					from, begin = 0, http2Begin()
					if conn = a.dial(nil); conn == nil {
						continue
					}
				}
				if _, err := conn.Write(append(begin, http2Calls(from, 100, "Check", true)...)); err != nil {
					conn = nil
				}
				from += 100
			}
		}()
	}
}

// valid asks as fast as it can over n connections, 32 calls at a time each.
func (a *attack) valid(n int) {
	for range n {
		client := newClient(a.t, loopback{}, a.addr)
		for range 32 {
			go func() {
				for {
					select {
					case <-a.done:
						client.close()
						return
					default:
						_, _ = client.check(time.Second, question{rule: kept, value: "flood", hits: 0})
					}
				}
			}()
		}
	}
}
