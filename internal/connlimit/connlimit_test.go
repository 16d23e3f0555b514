package connlimit

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// backlog is a listener in memory whose connections the test dials.
type backlog struct{ conns chan net.Conn }

func (b *backlog) Accept() (net.Conn, error) {
	c, ok := <-b.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (b *backlog) Close() error   { close(b.conns); return nil }
func (b *backlog) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection with a remote address.
type from struct {
	net.Conn
	addr net.Addr
}

func (c *from) RemoteAddr() net.Addr { return c.addr }

// rig is a Listener in a test, and the connections that it has accepted.
type rig struct {
	*Listener
	t     *testing.T
	lis   *backlog
	conns chan net.Conn
	log   bytes.Buffer
}

// listen runs a test in virtual time with a Listener.
func listen(t *testing.T, o Options, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, lis: &backlog{make(chan net.Conn)}, conns: make(chan net.Conn, 1_000)}
		o.Name, o.Log = "grpc", slog.New(slog.NewTextHandler(&r.log, nil))
		r.Listener = New(r.lis, o)
		go func() {
			defer close(r.conns)
			for {
				c, err := r.Accept()
				if err != nil {
					return
				}
				r.conns <- c
			}
		}()
		test(r)
		r.Listener.Close()
		for c := range r.conns {
			c.Close()
		}
	})
}

// client is the far end of a connection.
type client struct {
	net.Conn
	r    *rig
	near *Conn // nil when it was closed at once
}

// dial connects from an address.
func (r *rig) dial(addr string) *client {
	r.t.Helper()
	here, there := net.Pipe()
	r.lis.conns <- &from{there, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))}
	synctest.Wait()
	c := &client{Conn: here, r: r}
	select {
	case near := <-r.conns:
		c.near = Of(near.RemoteAddr())
	default:
	}
	r.t.Cleanup(func() { here.Close() })
	return c
}

// established dials and completes the handshake.
func (r *rig) established(addr string) *client {
	r.t.Helper()
	c := r.dial(addr)
	if c.near == nil || !c.near.Finish() {
		r.t.Fatalf("%s was not let in", addr)
	}
	return c
}

// open reports whether the connection is.
func (c *client) open() bool {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	return c.near != nil && c.near.state != gone
}

// send sends a byte that the near end reads.
func (c *client) send() {
	c.r.t.Helper()
	go func() { _, _ = c.Write([]byte{1}) }()
	if _, err := c.near.Read(make([]byte, 1)); err != nil {
		c.r.t.Fatal(err)
	}
}

func (r *rig) closed(reason Reason, want uint64) {
	r.t.Helper()
	if got := r.Stats().Closed[reason]; got != want {
		r.t.Errorf("%d closed for %q, want %d; all: %v", got, reason, want, r.Stats().Closed)
	}
}

// TestSilentConnections has connections without a handshake: they have their
// own bound, the oldest goes first, and none lasts.
func TestSilentConnections(t *testing.T) {
	o := Options{Bounds: Bounds{Established: 10, Unfinished: 3}}
	listen(t, o, func(r *rig) {
		honest := r.established("10.0.0.9:1")
		var silent []*client
		for i := range 5 {
			silent = append(silent, r.dial(fmt.Sprintf("10.0.0.1:%d", i+1)))
			time.Sleep(time.Millisecond)
		}
		for i, c := range silent {
			if c.open() != (i >= 2) {
				t.Errorf("silent connection %d is open: %v", i, c.open())
			}
		}
		r.closed(ReasonUnfinished, 2)
		late := r.established("10.0.0.9:2")
		time.Sleep(HandshakeTimeout)
		synctest.Wait()
		for i, c := range silent {
			if c.open() {
				t.Errorf("silent connection %d is open after %v", i, HandshakeTimeout)
			}
		}
		r.closed(ReasonHandshake, 2)
		known := r.dial("10.0.0.1:9")
		known.near.Counted()
		time.Sleep(HandshakeTimeout)
		synctest.Wait()
		if known.open() {
			t.Error("a connection whose fault is counted is open")
		}
		r.closed(ReasonHandshake, 2)
		if !honest.open() || !late.open() {
			t.Error("an established connection was closed")
		}
		if s := r.Stats(); s.Established != 2 || s.Unfinished != 0 {
			t.Errorf("stats %+v", s)
		}
		if n := strings.Count(r.log.String(), "reason=unfinished"); n != 1 {
			t.Errorf("%d lines about unfinished connections, want 1:\n%s", n, &r.log)
		}
	})
}

// TestSilentSource has one source with all unfinished connections but one: the
// one of another source survives.
func TestSilentSource(t *testing.T) {
	listen(t, Options{Bounds: Bounds{Established: 10, Unfinished: 4}}, func(r *rig) {
		slow := r.dial("10.0.0.9:1")
		for i := range 20 {
			time.Sleep(time.Millisecond)
			r.dial(fmt.Sprintf("10.0.0.1:%d", i+1))
		}
		if !slow.open() || !slow.near.Finish() {
			t.Error("the connection of another source was closed")
		}
	})
}

// TestHogs has sources with more connections than they may have, idle and busy
// ones.
func TestHogs(t *testing.T) {
	o := Options{Bounds: Bounds{Established: 6, Unfinished: 8, Source: 4}}
	listen(t, o, func(r *rig) {
		var hog []*client
		for i := range 4 {
			hog = append(hog, r.established(fmt.Sprintf("10.0.0.1:%d", i+1)))
		}
		if c := r.dial("10.0.0.1:9"); c.near != nil {
			t.Error("a source got another connection beside busy ones")
		}
		r.closed(ReasonSource, 1)

		time.Sleep(idleAfter)
		hog[0].send()
		if c := r.dial("10.0.0.1:10"); !c.open() || hog[1].open() || !hog[0].open() {
			t.Error("the first idle connection did not make room")
		}
		r.closed(ReasonIdle, 1)

		// Full: the source with the most connections makes room.
		for i := range 3 {
			r.established(fmt.Sprintf("10.0.0.2:%d", i+1))
		}
		if honest := r.established("10.0.0.9:1"); !honest.open() || hog[2].open() {
			t.Error("the hog did not make room")
		}
		r.closed(ReasonIdle, 2)

		// Full of busy ones.
		hog[0].send()
		hog[3].send()
		var last *client
		for i := range 3 {
			last = r.dial(fmt.Sprintf("10.0.0.3:%d", i+1))
			last.near.Finish()
		}
		if last.open() {
			t.Error("a connection was established beyond the bound")
		}
		r.closed(ReasonFull, 3)
		if s := r.Stats(); s.Established != 6 {
			t.Errorf("%d established, want 6", s.Established)
		}
	})
}

// TestKeep has a listener whose established connections no other one may push
// out, as that for peers.
func TestKeep(t *testing.T) {
	o := Options{Bounds: Bounds{Established: 2, Unfinished: 2}, Keep: true}
	listen(t, o, func(r *rig) {
		peers := []*client{r.established("10.0.0.1:1"), r.established("10.0.0.1:2")}
		time.Sleep(time.Hour)
		if c := r.dial("10.0.0.2:1"); c.near.Finish() || c.open() {
			t.Error("a third connection was established")
		}
		if !peers[0].open() || !peers[1].open() {
			t.Error("an established connection was closed")
		}
		peers[0].near.Close()
		peers[0].near.Close()
		r.established("10.0.0.2:2")
	})
}

func TestSource(t *testing.T) {
	tcp := func(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	for _, tt := range []struct {
		addr net.Addr
		want string
	}{
		{tcp("10.1.2.3:4"), "10.1.2.3/32"},
		{tcp("[::ffff:10.1.2.3]:4"), "10.1.2.3/32"},
		{tcp("[2001:db8:1:2:3:4:5:6]:7"), "2001:db8:1:2::/64"},
		{tcp("[fe80::1%eth0]:7"), "fe80::/64"},
		{&net.UnixAddr{Name: "@", Net: "unix"}, "invalid Prefix"},
		{&net.TCPAddr{}, "invalid Prefix"},
	} {
		if got := sourceOf(tt.addr).String(); got != tt.want {
			t.Errorf("the source of %v is %s, want %s", tt.addr, got, tt.want)
		}
	}
}

// TestAcceptRate has many connections come at once: they are handed on at a
// rate.
func TestAcceptRate(t *testing.T) {
	const all = acceptBurst + acceptRate/10
	listen(t, Options{Bounds: Bounds{Established: all, Unfinished: all}}, func(r *rig) {
		start := time.Now()
		for i := range all {
			here, there := net.Pipe()
			r.t.Cleanup(func() { here.Close() })
			r.lis.conns <- &from{there, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 1))}
		}
		if d := time.Since(start); d < 95*time.Millisecond || d > 105*time.Millisecond {
			t.Errorf("%d connections were accepted in %v, want 100ms", all, d)
		}
	})
}
