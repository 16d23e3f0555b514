package swim

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

// The queues of a transport in memory. A packet too many is lost, a stream too
// many refused, as in a real network.
const (
	memoryPackets = 512
	memoryStreams = 64
)

// MemoryNetwork is a network between daemons of one process: packets arrive in
// order at once, streams are net.Pipe, and links can be cut. It runs in a
// testing/synctest bubble: nothing in it waits but on channels and timers.
// Its methods may be called by any goroutine.
type MemoryNetwork struct {
	mu    sync.Mutex
	hosts map[string]*memoryTransport
	cut   map[link]struct{}
	apart map[string]struct{} // cut from all others
}

// link is one direction between two addresses.
type link struct{ from, to string }

// NewMemoryNetwork returns a network without hosts.
func NewMemoryNetwork() *MemoryNetwork {
	return &MemoryNetwork{
		hosts: map[string]*memoryTransport{},
		cut:   map[link]struct{}{},
		apart: map[string]struct{}{},
	}
}

// Transport returns the host at addr, an IP address and a port that no other
// has. It is free for another once the host is shut down.
func (n *MemoryNetwork) Transport(addr string) (Transport, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || at.Port() == 0 || at.Addr().IsUnspecified() {
		return nil, fmt.Errorf("swim: memory network: %q is not the address and port of one host, as 10.0.0.1:7946 is", addr)
	}
	t := &memoryTransport{
		network: n, at: at,
		packets: make(chan *memberlist.Packet, memoryPackets),
		streams: make(chan net.Conn, memoryStreams),
		done:    make(chan struct{}),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.hosts[at.String()]; ok {
		return nil, fmt.Errorf("swim: memory network: %s is in use", at)
	}
	n.hosts[at.String()] = t
	return t, nil
}

// Cut loses what a and b send each other, on open streams too.
func (n *MemoryNetwork) Cut(a, b string) {
	n.CutOneWay(a, b)
	n.CutOneWay(b, a)
}

// CutOneWay loses what from sends to to.
func (n *MemoryNetwork) CutOneWay(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[link{from, to}] = struct{}{}
}

// CutAll loses what addr and all others send each other.
func (n *MemoryNetwork) CutAll(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.apart[addr] = struct{}{}
}

// Heal ends all cuts. What was lost stays lost: a stream that lost bytes never
// says another word.
func (n *MemoryNetwork) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
	clear(n.apart)
}

// loses reports whether what from sends to to gets lost. mu is held.
func (n *MemoryNetwork) loses(from, to string) bool {
	if from == to {
		return false
	}
	_, cut := n.cut[link{from, to}]
	_, a := n.apart[from]
	_, b := n.apart[to]
	return cut || a || b
}

// passes reports whether what from sends to to arrives.
func (n *MemoryNetwork) passes(from, to string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.loses(from, to)
}

// memoryTransport is one host of a MemoryNetwork.
type memoryTransport struct {
	network *MemoryNetwork
	at      netip.AddrPort
	packets chan *memberlist.Packet
	streams chan net.Conn
	done    chan struct{} // closed, and the host gone, when it is shut down
}

// FinalAdvertiseAddr returns what is given or else the address of the host.
func (t *memoryTransport) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	if ip == "" {
		return t.at.Addr().AsSlice(), int(t.at.Port()), nil
	}
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return nil, 0, fmt.Errorf("swim: memory network: advertise: %w", err)
	}
	return addr.AsSlice(), port, nil
}

// WriteTo sends a packet, or loses it if the queue of the other side is full
// or nobody is there.
func (t *memoryTransport) WriteTo(b []byte, addr string) (time.Time, error) {
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

// WriteToAddress is WriteTo; names mean nothing here.
func (t *memoryTransport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, a.Addr)
}

// PacketCh hands out the packets that arrived.
func (t *memoryTransport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh hands out the streams that others opened.
func (t *memoryTransport) StreamCh() <-chan net.Conn { return t.streams }

// DialTimeout opens a stream: at once, or refused at once where nobody is, or
// after the timeout over a cut link.
func (t *memoryTransport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
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

// DialAddressTimeout is DialTimeout; names mean nothing here.
func (t *memoryTransport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, timeout)
}

func (t *memoryTransport) connect(addr string) (net.Conn, error) {
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
	case host.streams <- &memoryConn{Conn: far, network: n, from: host.at, to: t.at}:
		return &memoryConn{Conn: near, network: n, from: t.at, to: host.at}, nil
	default:
		return nil, dialError(addr, errors.New("connection refused"))
	}
}

// dialError looks like that of package net, which memberlist asks for.
func dialError(addr string, err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", addr, err)}
}

// Shutdown removes the host. Streams that it handed out stay open until
// whoever has them closes them.
func (t *memoryTransport) Shutdown() error {
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

// memoryConn is one end of a stream.
type memoryConn struct {
	net.Conn
	network  *MemoryNetwork
	from, to netip.AddrPort

	mu   sync.Mutex
	lost bool // bytes were lost, so what follows makes no sense to the other end
}

// Write sends b, or loses it and all that follows while the link is cut.
func (c *memoryConn) Write(b []byte) (int, error) {
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

// LocalAddr is the address of this end's host.
func (c *memoryConn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }

// RemoteAddr is the address of the other end's host.
func (c *memoryConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.to) }
