package grpchost

import (
	"net"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/credentials"

	"github.com/georld/rld/internal/connlimit"
)

// unsureFactor is how many times as many calls a connection may cancel while
// they may be older than they seem.
const unsureFactor = 4

// transport is the credentials of accepted connections, with bounds on their
// calls. It lies above TLS, where it sees the frames of HTTP/2.
type transport struct {
	credentials.TransportCredentials
	cancelled  int // young calls that a connection may cancel in a second
	incomplete *incompleteCalls
	pace       *rate.Limiter
}

// Clone returns a copy with the same bounds.
func (t *transport) Clone() credentials.TransportCredentials {
	c := *t
	c.TransportCredentials = t.TransportCredentials.Clone()
	return &c
}

// ServerHandshake performs the handshake of a connection.
func (t *transport) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := t.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	c := &boundedConn{Conn: conn, transport: t, of: connlimit.Of(raw.RemoteAddr()), frames: frames{left: len(preface)}}
	if c.of != nil {
		c.of.OnHold(func(bytes int) { c.bound(t.incomplete.hold(c, bytes)) })
	}
	return c, info, nil
}

// boundedConn is a connection whose calls are bounded.
type boundedConn struct {
	net.Conn
	transport *transport
	of        *connlimit.Conn // nil for a listener without bounds

	// Of the goroutine that reads.
	frames     frames
	cancelled  perSecond
	finished   bool
	unsure     time.Time // until when calls may be older than they seem: reads were delayed
	incomplete share     // as transport.incomplete knows it
	waiting    parts     // of a read that brought sudden calls

	// Guarded by incompleteCalls.mu.
	closed bool
}

// Read reads from the connection. It closes a connection that exceeds a bound,
// and hands on sudden calls a few at a time.
func (c *boundedConn) Read(b []byte) (int, error) {
	if len(c.waiting.bytes) > 0 {
		return c.next(b)
	}
	n, err := c.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	now := time.Now()
	cancelled := c.frames.scan(b[:n], now)
	if !c.finished && c.frames.begun {
		c.finished = true
		if c.of != nil && !c.of.Finish() {
			return 0, net.ErrClosed
		}
	}
	most := c.transport.cancelled
	if !now.After(c.unsure) {
		most *= unsureFactor
	}
	if cancelled > 0 && c.cancelled.add(cancelled, now) > most {
		c.end(connlimit.ReasonCancelled)
		return 0, net.ErrClosed
	}
	if c.frames.pieces {
		c.end(connlimit.ReasonPieces)
		return 0, net.ErrClosed
	}
	is := share{calls: len(c.frames.incomplete), bytes: c.frames.bytes}
	sudden := is.calls - c.incomplete.calls + cancelled
	if is != c.incomplete {
		c.incomplete = is
		if !c.bound(c.transport.incomplete.set(c, is)) { // without the calls that it has just begun
			return 0, net.ErrClosed
		}
	}
	d, ok := delay(c.transport.pace, sudden, now)
	if !ok {
		c.end(connlimit.ReasonIncomplete)
		return 0, net.ErrClosed
	}
	if d == 0 {
		return n, err
	}
	c.unsure = now.Add(d + 2*youngCall + time.Second) // with the second that is counted
	c.waiting = newParts(b[:n], sudden, now.Add(d))   // an error comes again with the next read
	return c.next(b)
}

// next hands on the next part of the bytes that wait.
func (c *boundedConn) next(b []byte) (int, error) {
	part, at := c.waiting.next(len(b))
	time.Sleep(time.Until(at))
	if c.transport.incomplete.isClosed(c) {
		return 0, net.ErrClosed
	}
	return copy(b, part), nil
}

// bound closes the connection that exceeds a bound, nil for none, and returns
// whether it was another one.
func (c *boundedConn) bound(worst *boundedConn, r connlimit.Reason) bool {
	if worst != nil {
		worst.end(r)
	}
	return worst != c
}

// end closes the connection for a reason.
func (c *boundedConn) end(r connlimit.Reason) {
	c.transport.incomplete.drop(c)
	if c.of != nil {
		c.of.End(r)
	} else {
		c.Conn.Close()
	}
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	c.transport.incomplete.drop(c)
	return c.Conn.Close()
}
