package connlimit

import (
	"container/list"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// state is where a connection is.
type state int

const (
	gone state = iota // closed, or not accepted
	unfinished
	established
)

// Conn is a connection of a Listener.
type Conn struct {
	net.Conn
	listener *Listener
	source   netip.Prefix
	remote   Addr
	readAt   atomic.Int64 // the time of the latest read, since the listener's start
	hold     func(int)    // of OnHold
	counted  atomic.Bool

	// Guarded by Listener.mu.
	state state
	place *list.Element
	since time.Duration // when it came to its state
	timer *time.Timer   // of the handshake
}

// Addr is the remote address of a Conn. Servers pass it to handlers, which get
// the connection by Of.
type Addr struct {
	net.Addr
	conn *Conn
}

// Of returns the connection of a remote address, nil for an address that no
// Listener accepted.
func Of(remote net.Addr) *Conn {
	if a, ok := remote.(*Addr); ok {
		return a.conn
	}
	return nil
}

// RemoteAddr returns the address of the other end, an *Addr.
func (c *Conn) RemoteAddr() net.Addr { return &c.remote }

// Read reads from the connection.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.readAt.Store(int64(c.listener.now()))
	}
	return n, err
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.listener.remove(c)
	return c.Conn.Close()
}

// Finish reports that the handshake is complete. It closes the connection if
// there is no room for it and returns whether it is established.
func (c *Conn) Finish() bool {
	victim, reason := c.listener.finish(c)
	if victim != nil {
		victim.End(reason)
	}
	return victim != c
}

// End closes the connection and counts the reason.
func (c *Conn) End(r Reason) {
	c.listener.count(r, c.remote.Addr)
	c.Close()
}

// OnHold sets what Hold calls, before the connection has calls.
func (c *Conn) OnHold(f func(int)) { c.hold = f }

// Hold reports that a call keeps bytes, of its request or of its answers; a
// negative number of bytes that it does not any more. It may close the
// connection.
func (c *Conn) Hold(bytes int) {
	if c.hold != nil {
		c.hold(bytes)
	}
}

// Counted reports that a fault of the connection has been counted elsewhere: if
// its handshake does not complete in time, the Listener only closes it.
func (c *Conn) Counted() { c.counted.Store(true) }

func (c *Conn) unfinished() bool {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	return c.state == unfinished
}
