package swim

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// Transport carries the packets and streams of the membership. It names
// memberlist's type for packages that may not import memberlist.
type Transport = memberlist.NodeAwareTransport

// Bounds of incoming streams. memberlist alone reads 20 MiB from each of any
// number of unknown senders before it tries a key.
const (
	maxInbound     = 64      // incoming streams
	maxStreamBytes = 4 << 20 // of one such stream: a list of maxMembers fits
)

// errClosed is the error of a transport after Shutdown.
var errClosed = errors.New("swim: closed")

// guard is a transport that bounds incoming streams and closes all streams at
// Shutdown, so that no reader blocks afterwards. It also withholds input from
// memberlist that would make it panic.
type guard struct {
	Transport
	refused *refusals // nil: no encryption, and no checks
	packets chan *memberlist.Packet
	streams chan net.Conn
	closing chan struct{} // closed when the shutdown begins
	stop    chan struct{} // closed when the inner transport is shut down
	mute    *atomic.Bool  // while true, packets and incoming streams are dropped
	pumped  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	open    map[*guardedConn]struct{}
	inbound int
}

// newGuard takes ownership of inner, which Shutdown shuts down too. With
// refused, which counts refusals, everything must be encrypted. While mute is
// true only outgoing streams pass.
func newGuard(inner Transport, refused *refusals, mute *atomic.Bool) *guard {
	g := &guard{
		mute:      mute,
		Transport: inner,
		refused:   refused,
		packets:   make(chan *memberlist.Packet),
		streams:   make(chan net.Conn),
		closing:   make(chan struct{}),
		stop:      make(chan struct{}),
		open:      map[*guardedConn]struct{}{},
	}
	g.pumped.Go(g.pumpPackets)
	g.pumped.Go(g.pumpStreams)
	return g
}

// PacketCh returns the incoming packets.
func (g *guard) PacketCh() <-chan *memberlist.Packet { return g.packets }

// StreamCh returns the incoming streams.
func (g *guard) StreamCh() <-chan net.Conn { return g.streams }

// pumpPackets moves packets from the inner transport to memberlist. During
// Shutdown it drops them.
func (g *guard) pumpPackets() {
	for {
		select {
		case p := <-g.Transport.PacketCh():
			if g.mute.Load() {
				continue
			}
			if g.refused != nil && len(p.Buf) > 0 && p.Buf[0] == paddedCipher {
				g.refused.wrongKeyFrom(p.From.String())
				continue
			}
			select {
			case g.packets <- p:
			case <-g.closing:
			}
		case <-g.stop:
			return
		}
	}
}

// pumpStreams moves streams likewise.
func (g *guard) pumpStreams() {
	for {
		select {
		case c := <-g.Transport.StreamCh():
			if g.mute.Load() {
				c.Close()
				continue
			}
			conn, err := g.hold(c, true)
			if err != nil {
				continue
			}
			select {
			case g.streams <- conn:
			case <-g.closing:
				conn.Close()
			}
		case <-g.stop:
			return
		}
	}
}

// hold tracks c until it is closed, or closes it.
func (g *guard) hold(c net.Conn, inbound bool) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		c.Close()
		return nil, errClosed
	case inbound && g.inbound >= maxInbound:
		c.Close()
		return nil, fmt.Errorf("swim: %d streams are open already", g.inbound)
	}
	in := bufio.NewReader(io.LimitReader(c, maxStreamBytes)) // the buffer is at least as large as one read of memberlist
	conn := &guardedConn{Conn: c, guard: g, inbound: inbound, in: in, checked: g.refused == nil}
	g.open[conn] = struct{}{}
	if inbound {
		g.inbound++
	}
	return conn, nil
}

func (g *guard) release(c *guardedConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.open[c]; !ok {
		return
	}
	delete(g.open, c)
	if c.inbound {
		g.inbound--
	}
}

// DialTimeout opens a stream. Shutdown closes it at the latest.
func (g *guard) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return g.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout is DialTimeout.
func (g *guard) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if g.isClosed() {
		return nil, errClosed
	}
	c, err := g.Transport.DialAddressTimeout(a, timeout)
	if err != nil {
		return nil, err
	}
	return g.hold(c, false)
}

// WriteTo sends a packet.
func (g *guard) WriteTo(b []byte, addr string) (time.Time, error) {
	return g.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress is WriteTo.
func (g *guard) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if g.isClosed() {
		return time.Time{}, errClosed
	}
	if g.mute.Load() {
		return time.Now(), nil
	}
	return g.Transport.WriteToAddress(b, a)
}

func (g *guard) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// FinalAdvertiseAddr returns that of the inner transport, with IPv4 addresses
// in their short form: memberlist compares bytes.
func (g *guard) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	at, n, err := g.Transport.FinalAdvertiseAddr(ip, port)
	if short := at.To4(); short != nil {
		at = short
	}
	return at, n, err
}

// Shutdown closes the inner transport and all streams. Further calls do
// nothing.
func (g *guard) Shutdown() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	open := g.open
	g.open = map[*guardedConn]struct{}{}
	g.mu.Unlock()
	for c := range open {
		c.Conn.Close()
	}

	close(g.closing)
	err := g.Transport.Shutdown()
	close(g.stop)
	g.pumped.Wait()
	return err
}

// The header of an encrypted stream: a type, the length of the rest (big
// endian) and the version of the cipher.
const (
	cipherHead   = 6
	cipherType   = 10
	cipherEmpty  = 29 // the length of an empty message, with nonce and tag
	paddedCipher = 0  // a former version, with padding
)

// errNotMember is the error of a stream that no member would send. memberlist
// panics on a message without content, and on one with wrong padding; both are
// detected before decryption.
var errNotMember = errors.New("not what a member sends")

// guardedConn is a stream that a guard tracks.
type guardedConn struct {
	net.Conn
	guard   *guard
	inbound bool
	in      *bufio.Reader // the input, up to maxStreamBytes
	checked bool          // the header was checked
}

// Read ends the stream after maxStreamBytes, and returns an error for a header
// that no member would send.
func (c *guardedConn) Read(b []byte) (int, error) {
	if !c.checked {
		if err := c.check(); err != nil {
			return 0, err
		}
		c.checked = true
	}
	return c.in.Read(b)
}

// check checks the header. memberlist handles streams of other types.
func (c *guardedConn) check() error {
	head, err := c.in.Peek(1)
	if err != nil || head[0] != cipherType {
		return err
	}
	if head, err = c.in.Peek(cipherHead); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(head[1:]) <= cipherEmpty || head[cipherHead-1] == paddedCipher {
		return errNotMember
	}
	return nil
}

// Close closes the stream.
func (c *guardedConn) Close() error {
	c.guard.release(c)
	return c.Conn.Close()
}
