package link

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/internal/connlimit"
)

// silent connects to a daemon and sends nothing.
func (n *network) silent(t *testing.T, d *daemon) net.Conn {
	t.Helper()
	conn, err := n.dial(t.Context(), d.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestSilentConnections has more connections without a hello than there is room
// for: a peer connects beside them.
func TestSilentConnections(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), func(c *Config) {
			c.Bounds = connlimit.Bounds{Established: 2, Unfinished: 3}
		})
		var silent []net.Conn
		for range 5 {
			silent = append(silent, n.silent(t, a))
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		for i, conn := range silent[:2] {
			if _, err := conn.Read(make([]byte, 64)); err == nil {
				_, err = conn.Read(make([]byte, 64)) // after the settings of HTTP/2
				if err == nil {
					t.Errorf("silent connection %d is open", i)
				}
			}
		}
		if got := a.Stats().Refused[ReasonConnections]; got != 2 || a.lines("a newer connection took its place") != 1 {
			t.Errorf("%d refused, want 2; log %s", got, a.log)
		}
		b := n.start(t, helloOf(2, "eu", "b"), nil)
		b.Targets([]Target{to(a)})
		synctest.Wait()
		if s := b.outgoing(a.addr); s.State != StateUp {
			t.Errorf("the peer is not connected: %+v", s)
		}
		before := a.Stats().Refused[ReasonHello]
		time.Sleep(closeWithin)
		synctest.Wait()
		if got := a.Stats().Refused[ReasonHello] - before; got != 2 {
			t.Errorf("%d connections ended without a hello in time, want 2", got)
		}
		if s := b.outgoing(a.addr); s.State != StateUp {
			t.Errorf("the peer was disconnected: %+v", s)
		}
	})
}

// TestTooManyConnections has as many peers as there is room for: no other one
// pushes them out.
func TestTooManyConnections(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), func(c *Config) {
			c.Bounds = connlimit.Bounds{Established: 1, Unfinished: 3}
		})
		b := n.start(t, helloOf(2, "eu", "b"), nil)
		b.Targets([]Target{to(a)})
		synctest.Wait()
		c := n.start(t, helloOf(3, "eu", "c"), nil)
		c.Targets([]Target{to(a)})
		synctest.Wait()
		if s := c.outgoing(a.addr); s.State == StateUp {
			t.Error("a second peer is connected")
		}
		if s := b.outgoing(a.addr); s.State != StateUp {
			t.Errorf("the first peer was disconnected: %+v", s)
		}
		if got := a.Stats().Refused[ReasonConnections]; got == 0 {
			t.Errorf("refused %v", a.Stats().Refused)
		}
	})
}
