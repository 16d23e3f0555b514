// Package fakenet is a network between daemons of one process, for tests of the
// membership and of daemons.
package fakenet

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// Bounds of the queues of a host. Further packets are lost, further streams
// refused, as in a real network.
const (
	maxPackets = 512
	maxStreams = 64
)

// Network is a network between daemons of one process: packets
// arrive in order and at once, streams are net.Pipe, and links can be cut. It
// works in a testing/synctest bubble, since it blocks only on channels and
// timers. Its methods are safe for concurrent use.
type Network struct {
	mu    sync.Mutex
	hosts map[string]*transport
	cut   map[link]bool
}

// link is one direction between two addresses; to is "" for all other hosts, in
// both directions.
type link struct{ from, to string }

// New returns a network without hosts.
func New() *Network {
	return &Network{hosts: map[string]*transport{}, cut: map[link]bool{}}
}

// Transport returns the host at addr, a unique IP address and port. The address
// is free again once the host is shut down.
func (n *Network) Transport(addr string) (memberlist.NodeAwareTransport, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || at.Port() == 0 || at.Addr().IsUnspecified() {
		return nil, fmt.Errorf("fakenet: %q is not the address and port of one host, as 10.0.0.1:7946 is", addr)
	}
	t := &transport{
		network: n, at: at,
		packets: make(chan *memberlist.Packet, maxPackets),
		streams: make(chan net.Conn, maxStreams),
		done:    make(chan struct{}),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.hosts[at.String()]; ok {
		return nil, fmt.Errorf("fakenet: %s is in use", at)
	}
	n.hosts[at.String()] = t
	return t, nil
}

// Cut drops the traffic between a and b, on open streams too.
func (n *Network) Cut(a, b string) {
	n.CutOneWay(a, b)
	n.CutOneWay(b, a)
}

// CutOneWay drops the traffic in one direction.
func (n *Network) CutOneWay(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[link{from, to}] = true
}

// CutAll drops the traffic between addr and all other hosts.
func (n *Network) CutAll(addr string) { n.CutOneWay(addr, "") }

// Heal ends all cuts. A stream that lost bytes stays silent.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
}

// loses reports whether traffic in one direction is dropped. mu is held.
func (n *Network) loses(from, to string) bool {
	return from != to && (n.cut[link{from, to}] || n.cut[link{from, ""}] || n.cut[link{to, ""}])
}

// passes reports whether traffic in one direction arrives.
func (n *Network) passes(from, to string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.loses(from, to)
}

// transport is one host of a Network.
type transport struct {
	network *Network
	at      netip.AddrPort
	packets chan *memberlist.Packet
	streams chan net.Conn
	done    chan struct{} // closed when the host is shut down and removed
}

// FinalAdvertiseAddr returns the given address, or else that of the host.
func (t *transport) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	if ip == "" {
		return t.at.Addr().AsSlice(), int(t.at.Port()), nil
	}
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return nil, 0, fmt.Errorf("fakenet: advertise: %w", err)
	}
	return addr.AsSlice(), port, nil
}

// WriteTo sends a packet. It is lost when the queue of the receiver is full or
// there is no receiver.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	n := t.network
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	host, ok := n.hosts[addr]
	if !ok || n.loses(t.at.String(), addr) {
		return now, nil
	}
	select {
	case host.packets <- &memberlist.Packet{Buf: bytes.Clone(b), From: net.UDPAddrFromAddrPort(t.at), Timestamp: now}:
	default:
	}
	return now, nil
}

// WriteToAddress is WriteTo; names are ignored.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, a.Addr)
}

// PacketCh returns the incoming packets.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh returns the incoming streams.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// DialTimeout opens a stream at once. Without a host at addr it fails at once,
// and over a cut link after the timeout.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	conn, err := t.connect(addr)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return conn, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil, err
	case <-t.done:
		return nil, dialError(addr, net.ErrClosed)
	}
}

// DialAddressTimeout is DialTimeout; names are ignored.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, timeout)
}

func (t *transport) connect(addr string) (net.Conn, error) {
	n, own := t.network, t.at.String()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.loses(own, addr) || n.loses(addr, own) {
		return nil, dialError(addr, os.ErrDeadlineExceeded)
	}
	host, ok := n.hosts[addr]
	if !ok {
		return nil, dialError(addr, errors.New("connection refused"))
	}
	near, far := net.Pipe()
	select {
	case host.streams <- &conn{Conn: far, network: n, from: host.at, to: t.at}:
		return &conn{Conn: near, network: n, from: t.at, to: host.at}, nil
	default:
		return nil, dialError(addr, errors.New("connection refused"))
	}
}

// dialError returns an error like that of package net, whose type memberlist
// checks.
func dialError(addr string, err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", addr, err)}
}

// Shutdown removes the host. Streams that were accepted stay open until their
// users close them.
func (t *transport) Shutdown() error {
	n := t.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts[t.at.String()] != t {
		return nil
	}
	delete(n.hosts, t.at.String())
	close(t.done)
	for {
		select {
		case c := <-t.streams:
			c.Close()
		default:
			return nil
		}
	}
}

// conn is one end of a stream.
type conn struct {
	net.Conn
	network  *Network
	from, to netip.AddrPort

	mu   sync.Mutex
	lost bool // bytes were lost, so the rest of the stream is dropped too
}

// Write sends b. While the link is cut it drops b and the rest of the stream.
func (c *conn) Write(b []byte) (int, error) {
	passes := c.network.passes(c.from.String(), c.to.String())
	c.mu.Lock()
	c.lost = c.lost || !passes
	lost := c.lost
	c.mu.Unlock()
	if lost {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// LocalAddr returns the address of this end's host.
func (c *conn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }

// RemoteAddr returns the address of the other end's host.
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.to) }
