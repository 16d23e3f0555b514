package demo

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/georld/rld/internal/await"
)

// within is how long bytes may take that must arrive.
const within = 30 * time.Second

// wanRig is a network of two regions and a connection from a to b.
type wanRig struct {
	t        *testing.T
	wan      *WAN
	lis      net.Listener
	near     net.Conn // at the dialer, in a
	far      net.Conn // at the acceptor, in b
	accepted chan net.Conn
}

func newWANRig(t *testing.T, delay time.Duration) *wanRig {
	t.Helper()
	link := func(string, string) Link { return Link{Delay: delay} }
	r := &wanRig{t: t, wan: NewWAN([]string{"a", "b", "c"}, link, 1), accepted: make(chan net.Conn, 8)}
	lis, err := r.wan.Listen("b", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.lis = lis
	go func() {
		for {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			r.accepted <- c
		}
	}()
	t.Cleanup(func() {
		lis.Close()
		r.wan.Close()
		if r.far != nil {
			r.near.Close()
			r.far.Close()
		}
	})
	r.near, r.far = r.dial()
	return r
}

func (r *wanRig) dial() (near, far net.Conn) {
	r.t.Helper()
	near, err := r.wan.Dial(r.t.Context(), "a", r.lis.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	return near, await.Value(r.t, "an accepted connection", r.accepted)
}

// send writes at one end and returns how long it took to the other, -1 when
// it did not come in time.
func (r *wanRig) send(from, to net.Conn, within time.Duration) time.Duration {
	r.t.Helper()
	began := time.Now()
	if _, err := from.Write([]byte("x")); err != nil {
		r.t.Fatal(err)
	}
	to.SetReadDeadline(time.Now().Add(within))
	if _, err := io.ReadFull(to, make([]byte, 1)); err != nil {
		var late net.Error
		if !errors.As(err, &late) || !late.Timeout() {
			r.t.Fatal(err)
		}
		return -1
	}
	return time.Since(began)
}

func TestWANDelaysBothWays(t *testing.T) {
	const delay = 60 * time.Millisecond
	began := time.Now()
	r := newWANRig(t, delay)
	if took := time.Since(began); took < 2*delay {
		t.Errorf("a handshake took %v, want a round trip of %v", took, 2*delay)
	}
	for _, way := range [][2]net.Conn{{r.near, r.far}, {r.far, r.near}} {
		if took := r.send(way[0], way[1], within); took < delay {
			t.Errorf("took %v, want %v", took, delay)
		}
	}
	r.wan.SetDelay("a", "b", 200*time.Millisecond)
	if took := r.send(r.near, r.far, within); took < 200*time.Millisecond {
		t.Errorf("then it took %v, want 200ms", took)
	}
	if r.near.RemoteAddr().String() != r.lis.Addr().String() {
		t.Errorf("the other end is said to be at %v", r.near.RemoteAddr())
	}
}

func TestWANKeepsOrderAndBytes(t *testing.T) {
	r := newWANRig(t, time.Millisecond)
	r.wan.mu.Lock()
	r.wan.paths[between("a", "b")].link = Link{Delay: time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.001}
	r.wan.mu.Unlock()
	const size = 8 << 20 // more than is ever under way
	go func() {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(i >> 8 * i)
		}
		r.near.Write(b)
		r.near.Close()
	}()
	var got []byte
	var err error
	await.Done(t, "the end of the bytes", func() { got, err = io.ReadAll(r.far) })
	if err != nil || len(got) != size {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for i := range got {
		if got[i] != byte(i>>8*i) {
			t.Fatalf("byte %d is wrong", i)
		}
	}
}

func TestWithinARegionNothingIsInBetween(t *testing.T) {
	r := newWANRig(t, 50*time.Millisecond)
	c, err := r.wan.Dial(t.Context(), "b", r.lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer await.Value(t, "an accepted connection", r.accepted).Close()
	if _, ok := c.(*net.TCPConn); !ok {
		t.Errorf("got a %T", c)
	}
}

func TestACutHoldsAndAHealGoesOnOrBreaks(t *testing.T) {
	var r *wanRig
	// After a short partition the held bytes are sent. A machine that stands
	// still for a moment makes it a long one.
	for short := false; !short; {
		r = newWANRig(t, time.Millisecond)
		began := time.Now()
		if !r.wan.Cut("b", "a") || r.wan.Cut("a", "b") {
			t.Fatal("cut twice")
		}
		for _, way := range [][2]net.Conn{{r.near, r.far}, {r.far, r.near}} {
			if took := r.send(way[0], way[1], 50*time.Millisecond); took >= 0 {
				t.Fatalf("came across the cut in %v", took)
			}
		}
		if n := r.wan.Heal(); n != 1 {
			t.Fatalf("%d healed", n)
		}
		arrived := true
		for _, c := range []net.Conn{r.near, r.far} {
			c.SetReadDeadline(time.Now().Add(within))
			_, err := io.ReadFull(c, make([]byte, 1))
			if arrived = arrived && err == nil; isTimeout(err) {
				t.Fatal("held bytes were not sent after the heal")
			}
		}
		if short = time.Since(began) < holdGrace; short && !arrived {
			t.Fatal("a short cut ended a connection")
		}
	}
	// A long partition ends the connection with a reason.
	idle, other := r.dial()
	defer idle.Close()
	defer other.Close()
	r.wan.Cut("a", "b")
	if _, err := r.near.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(holdGrace + 100*time.Millisecond)
	r.wan.Heal()
	r.near.SetReadDeadline(time.Now().Add(within))
	r.far.SetReadDeadline(time.Now().Add(within))
	if _, err := r.near.Read(make([]byte, 1)); !errors.Is(err, ErrCut) {
		t.Errorf("after a long cut: %v, want %v", err, ErrCut)
	}
	if _, err := r.far.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Error("the other end still lives")
	}
	if took := r.send(idle, other, within); took < 0 {
		t.Error("what nothing was held of does not go on")
	}
}

func TestNobodyLearnsAcrossACut(t *testing.T) {
	r := newWANRig(t, time.Millisecond)
	r.wan.Cut("a", "b")
	r.near.Close()
	r.far.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := r.far.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("got %v across the cut", err)
	}
	r.wan.Heal()
	r.far.SetReadDeadline(time.Now().Add(within))
	if _, err := r.far.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("after it: %v", err)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestDialsWaitForAHeal(t *testing.T) {
	r := newWANRig(t, time.Millisecond)
	r.wan.Cut("a", "b")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.wan.Dial(ctx, "a", r.lis.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	came := make(chan error, 1)
	go func() {
		c, err := r.wan.Dial(t.Context(), "a", r.lis.Addr().String())
		if err == nil {
			c.Close()
		}
		came <- err
	}()
	select {
	case err := <-came:
		t.Fatalf("came across the cut: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	r.wan.Heal()
	if err := await.Value(t, "a connection after the heal", came); err != nil {
		t.Error(err)
	}
	await.Value(t, "an accepted connection", r.accepted).Close()
}

func TestParts(t *testing.T) {
	r := newWANRig(t, 0)
	for _, step := range []struct {
		a, b  string
		parts int
		cuts  int
	}{{"", "", 1, 0}, {"a", "b", 1, 1}, {"a", "c", 2, 2}, {"c", "b", 3, 3}} {
		if step.a != "" {
			r.wan.Cut(step.a, step.b)
		}
		if p, c := r.wan.Parts(), r.wan.Cuts(); len(p) != step.parts || len(c) != step.cuts {
			t.Errorf("%s-%s: parts %v, cuts %v", step.a, step.b, p, c)
		}
	}
}

func TestCloseEndsTheNetwork(t *testing.T) {
	r := newWANRig(t, time.Millisecond)
	r.wan.Cut("a", "b")
	done := make(chan error, 1)
	go func() {
		_, err := r.wan.Dial(context.Background(), "a", r.lis.Addr().String())
		done <- err
	}()
	r.wan.Close()
	if err := await.Value(t, "the end of a dial", done); err == nil {
		t.Error("a dial came through")
	}
	if _, err := r.near.Write([]byte("x")); err == nil {
		t.Error("a connection outlived its network")
	}
}

func TestProfiles(t *testing.T) {
	for _, tt := range []struct {
		p    Profile
		a, b string
		want time.Duration
	}{
		{Global, "us-east", "eu-west", 40 * time.Millisecond},
		{Global, "ap-south", "us-east", 90 * time.Millisecond},
		{Global, "eu-west", "eu-north", sameContinent},
		{Global, "x", "y", elsewhere},
		{Fast, "x", "y", 5 * time.Millisecond},
		{None, "x", "y", 0},
	} {
		if got := tt.p.Link(tt.a, tt.b).Delay; got != tt.want {
			t.Errorf("%s: %s-%s %v, want %v", tt.p, tt.a, tt.b, got, tt.want)
		}
	}
	var p Profile
	if err := p.Set("gobal"); err == nil || err.Error() != "use global, fast or none" {
		t.Errorf("got %v", err)
	}
}
