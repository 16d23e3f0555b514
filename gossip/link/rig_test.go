package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/test/bufconn"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network connects hosts in memory, by address.
type network struct {
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	conns     map[string][]*memoryConn // dialed, by address
	dials     int
}

func newNetwork() *network {
	return &network{listeners: make(map[string]*bufconn.Listener), conns: make(map[string][]*memoryConn)}
}

func (n *network) listen(addr string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[addr] = bufconn.Listen(64 << 10)
	return memoryListener{n.listeners[addr]}
}

// memoryListener accepts connections with the deadlines of a deadlineConn.
type memoryListener struct{ *bufconn.Listener }

func (l memoryListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return deadlineConn{conn}, nil
}

// deadlineConn is a connection of bufconn whose deadlines are at least a
// nanosecond ahead. Bufconn starts a timer for each deadline; in a
// testing/synctest bubble, timers that are due at once run in the goroutines
// that start them, and two at a time crash the race detector
// (golang/go#78156).
type deadlineConn struct{ net.Conn }

func ahead(t time.Time) time.Time {
	if soonest := time.Now().Add(1); !t.IsZero() && t.Before(soonest) {
		return soonest
	}
	return t
}

func (c deadlineConn) SetDeadline(t time.Time) error     { return c.Conn.SetDeadline(ahead(t)) }
func (c deadlineConn) SetReadDeadline(t time.Time) error { return c.Conn.SetReadDeadline(ahead(t)) }

func (c deadlineConn) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(ahead(t)) }

func (n *network) dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	lis := n.listeners[addr]
	n.dials++
	n.mu.Unlock()
	if lis == nil {
		return nil, errors.New("connection refused by the test")
	}
	conn, err := lis.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	c := &memoryConn{Conn: deadlineConn{conn}, gone: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns[addr] = append(n.conns[addr], c)
	return c, nil
}

// written is the bytes that were sent to an address.
func (n *network) written(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := 0
	for _, c := range n.conns[addr] {
		sum += int(c.sent.Load())
	}
	return sum
}

// freeze stops the connections to addr: they neither read nor write.
func (n *network) freeze(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns[addr] {
		c.frozen.Store(true)
	}
}

// memoryConn is the dialer's end of a connection, which can be made to stop.
type memoryConn struct {
	net.Conn
	sent   atomic.Int64
	frozen atomic.Bool
	once   sync.Once
	gone   chan struct{}
}

func (c *memoryConn) Write(b []byte) (int, error) {
	if c.frozen.Load() {
		<-c.gone
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

func (c *memoryConn) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// daemon is a Host in a test, and its Handler.
type daemon struct {
	*Host
	t     *testing.T
	net   *network
	addr  string
	hello Hello
	log   *syncBuffer

	mu     sync.Mutex
	events []string
	frames map[crdt.Incarnation][]string
	lists  map[crdt.Incarnation][]gossip.Member
	judge  func(from Hello, frame []byte) error
}

func helloOf(id crdt.Incarnation, region, name string) Hello {
	is := identityOf(id)
	return Hello{
		Daemon: is.Key.ID(), Run: is.Run,
		Member: gossip.Member{
			Peer: gossip.Peer{ID: id, Name: name, Region: region, Ready: true},
			Addr: name + ":7947", Build: "test",
		},
		Shards: 4, Rules: 7,
	}
}

// start runs a daemon until the test ends. Adjust may be nil.
func (n *network) start(t *testing.T, hello Hello, adjust func(*Config)) *daemon {
	t.Helper()
	d := &daemon{
		t: t, net: n, addr: hello.Member.Addr, hello: hello, log: &syncBuffer{},
		frames: make(map[crdt.Incarnation][]string), lists: make(map[crdt.Incarnation][]gossip.Member),
	}
	c := Config{
		Self: d.says, Dial: n.dial, Handler: d,
		Identity: func() control.Identity { return identityOf(d.says().Member.ID) },
		Log:      slog.New(slog.NewTextHandler(d.log, nil)),
	}
	if adjust != nil {
		adjust(&c)
	}
	d.Host = New(c)
	lis := n.listen(d.addr)
	served := make(chan error, 1)
	go func() { served <- d.Serve(lis) }()
	t.Cleanup(func() {
		d.Close()
		if err := <-served; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	return d
}

// says returns the hello of the daemon, which a test may change.
func (d *daemon) says() Hello {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hello
}

func (d *daemon) Frame(from Hello, frame []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frames[from.Member.ID] = append(d.frames[from.Member.ID], string(frame))
	if d.judge != nil {
		return d.judge(from, frame)
	}
	return nil
}

func (d *daemon) Connected(addr string, h Hello) { d.note("met %s %s", addr, h.Member.ID) }

func (d *daemon) Disconnected(addr string, h Hello, err error) {
	if err == nil {
		d.t.Error("lost a stream without a reason")
	}
	d.note("lost %s %s", addr, h.Member.ID)
}

func (d *daemon) Members(from Hello, members []gossip.Member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lists[from.Member.ID] = members
}

func (d *daemon) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, fmt.Sprintf(format, args...))
}

func (d *daemon) got(from crdt.Incarnation) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.frames[from]...)
}

func (d *daemon) happened() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.events, "; ")
}

func (d *daemon) list(from crdt.Incarnation) []gossip.Member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lists[from]
}

// lines returns how many lines of the log hold all of parts.
func (d *daemon) lines(parts ...string) int {
	count := 0
	for line := range strings.Lines(d.log.String()) {
		has := true
		for _, p := range parts {
			has = has && strings.Contains(line, p)
		}
		if has {
			count++
		}
	}
	return count
}

// to is the target of another daemon.
func to(d *daemon) Target { return Target{Addr: d.addr, Region: d.hello.Member.Region} }

// outgoing returns the stream to an address.
func (d *daemon) outgoing(addr string) Stream {
	d.t.Helper()
	for _, s := range d.Streams() {
		if !s.Incoming && s.Addr == addr {
			return s
		}
	}
	d.t.Fatalf("no target %s", addr)
	return Stream{}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T, n *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newNetwork()) })
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
