package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// fabric is a network of streams in memory that behaves like TCP: with a delay
// between each two hosts, and paths that can be partitioned. Data on a
// partitioned path waits until it heals, like the retransmissions of TCP. All
// waits use channels and timers, so it works in a synctest bubble. It is safe
// for concurrent use.
type fabric struct {
	delay func(from, to string) time.Duration // between hosts, one way

	mu      sync.Mutex
	lists   map[string]*fabricListener // by address
	cuts    map[[2]string]bool         // from host to host
	changed chan struct{}              // closed when cuts changes
	port    int                        // of the last dialer
}

func newFabric(delay func(from, to string) time.Duration) *fabric {
	return &fabric{
		delay: delay, lists: map[string]*fabricListener{}, cuts: map[[2]string]bool{},
		changed: make(chan struct{}), port: 40_000,
	}
}

// hostPart returns addr without its port.
func hostPart(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		panic(err)
	}
	return host
}

// cut partitions two hosts.
func (f *fabric) cut(a, b string) {
	f.change(func() { f.cuts[[2]string{a, b}], f.cuts[[2]string{b, a}] = true, true })
}

// heal ends all partitions.
func (f *fabric) heal() { f.change(func() { clear(f.cuts) }) }

func (f *fabric) change(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
	close(f.changed)
	f.changed = make(chan struct{})
}

// way returns whether a path is partitioned, and a channel that is closed when
// that changes.
func (f *fabric) way(from, to string) (cut bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cuts[[2]string{from, to}], f.changed
}

// errStopped is the error of a travel that was stopped.
var errStopped = errors.New("nobody waits for it any more")

// travel returns when data that was sent at an instant has arrived.
func (f *fabric) travel(stop <-chan struct{}, from, to string, sent time.Time) error {
	for {
		cut, changed := f.way(from, to)
		if !cut {
			break
		}
		select {
		case <-changed:
		case <-stop:
			return errStopped
		}
	}
	left := time.Until(sent.Add(f.delay(from, to)))
	if left <= 0 {
		return nil
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-stop:
		return errStopped
	}
}

// fabricListener accepts the connections to an address.
type fabricListener struct {
	fabric *fabric
	addr   fabricAddr
	conns  chan net.Conn
	done   chan struct{}
	once   sync.Once
}

// fabricAddr is an address, host:port.
type fabricAddr string

// Network returns "tcp".
func (fabricAddr) Network() string { return "tcp" }

// String returns host:port.
func (a fabricAddr) String() string { return string(a) }

// listen opens a free address.
func (f *fabric) listen(addr string) (net.Listener, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lists[addr] != nil {
		return nil, fmt.Errorf("%s is in use", addr)
	}
	l := &fabricListener{fabric: f, addr: fabricAddr(addr), conns: make(chan net.Conn), done: make(chan struct{})}
	f.lists[addr] = l
	return l, nil
}

// Accept returns the next connection.
func (l *fabricListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close frees the address.
func (l *fabricListener) Close() error {
	l.once.Do(func() {
		l.fabric.mu.Lock()
		delete(l.fabric.lists, string(l.addr))
		l.fabric.mu.Unlock()
		close(l.done)
	})
	return nil
}

// Addr returns the address.
func (l *fabricListener) Addr() net.Addr { return l.addr }

// dialer returns the dial function of a host.
func (f *fabric) dialer(host string) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) { return f.dial(ctx, host, addr) }
}

func (f *fabric) dial(ctx context.Context, from, addr string) (net.Conn, error) {
	to := hostPart(addr)
	if f.travel(ctx.Done(), from, to, time.Now()) != nil {
		return nil, ctx.Err()
	}
	f.mu.Lock()
	l := f.lists[addr]
	f.port++
	local := fabricAddr(net.JoinHostPort(from, fmt.Sprint(f.port)))
	f.mu.Unlock()
	if f.travel(ctx.Done(), to, from, time.Now()) != nil {
		return nil, ctx.Err()
	}
	if l == nil {
		return nil, fmt.Errorf("dial %s: connection refused", addr)
	}
	near, far := f.pair(local, fabricAddr(addr))
	var err error
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		err = fmt.Errorf("dial %s: connection refused", addr)
	case <-ctx.Done():
		err = ctx.Err()
	}
	near.Close()
	far.Close()
	return nil, err
}

// pair returns both ends of a connection.
func (f *fabric) pair(local, remote fabricAddr) (near, far net.Conn) {
	nearApp, nearWire := net.Pipe()
	farApp, farWire := net.Pipe()
	a := &fabricEnd{Conn: nearWire, host: hostPart(string(local)), gone: make(chan struct{})}
	b := &fabricEnd{Conn: farWire, host: hostPart(string(remote)), gone: make(chan struct{})}
	go f.carry(a, b)
	go f.carry(b, a)
	return &fabricConn{nearApp, local, remote}, &fabricConn{farApp, remote, local}
}

// fabricConn is one side of a connection.
type fabricConn struct {
	net.Conn
	local, remote fabricAddr
}

// LocalAddr returns the address of this side.
func (c *fabricConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other side.
func (c *fabricConn) RemoteAddr() net.Addr { return c.remote }

// fabricEnd is the inner end of a side.
type fabricEnd struct {
	net.Conn
	host string
	gone chan struct{} // closed when the side has closed the connection
}

// parcel is the data of one write.
type parcel struct {
	data []byte
	sent time.Time
}

// onTheWay bounds the parcels of a connection in transit, like the window of
// TCP.
const onTheWay = 64

// carry moves bytes from one side to the other until one of them has closed.
func (f *fabric) carry(from, to *fabricEnd) {
	parcels := make(chan parcel, onTheWay)
	go f.deliver(from, to, parcels)
	defer close(parcels)
	defer close(from.gone)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		select {
		case parcels <- parcel{bytes.Clone(buf[:n]), time.Now()}:
		case <-to.gone:
			return
		}
	}
}

// deliver passes on the data of carry, and at last the end.
func (f *fabric) deliver(from, to *fabricEnd, parcels <-chan parcel) {
	defer to.Close()
	for p := range parcels {
		if f.travel(to.gone, from.host, to.host, p.sent) != nil {
			break
		}
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	// No earlier data is in transit any more.
	select {
	case <-to.gone:
		from.Close() // a reset
		return
	default:
	}
	_ = f.travel(to.gone, from.host, to.host, time.Now())
}
