package grpchost

import (
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/credentials"

	"github.com/georld/rld/internal/connlimit"
)

// The bounds on calls that their client has not sent completely, among them
// open streams. Each takes a goroutine or two, about 20 kB.
const (
	maxIncompleteEach = 2 * maxStreamsEach // of one connection
	maxIncomplete     = 4_096              // of all
)

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
	return &boundedConn{
		Conn: conn, transport: t, of: connlimit.Of(raw.RemoteAddr()), frames: frames{left: len(preface)},
	}, info, nil
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
	incomplete int       // as transport.incomplete knows it
	waiting    parts     // of a read that brought sudden calls

	closed bool // guarded by incompleteCalls.mu
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
	if cancelled > 0 && now.After(c.unsure) && c.cancelled.add(cancelled, now) > c.transport.cancelled {
		c.end(connlimit.ReasonCancelled)
		return 0, net.ErrClosed
	}
	k := len(c.frames.incomplete)
	sudden := k - c.incomplete + cancelled
	if k != c.incomplete {
		c.incomplete = k
		if worst := c.transport.incomplete.set(c, k); worst != nil {
			worst.end(connlimit.ReasonIncomplete)
			if worst == c { // without the calls that it has just begun
				return 0, net.ErrClosed
			}
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
	c.unsure = now.Add(d + 2*youngCall)
	c.waiting = newParts(b[:n], sudden, now.Add(d)) // an error comes again with the next read
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

// incompleteCalls counts the incomplete calls of all connections. The zero
// value is ready for use.
type incompleteCalls struct {
	mu    sync.Mutex
	sum   int
	conns map[*boundedConn]int // those with any
}

// set sets the number of a connection. It returns the connection to close
// because of it, nil for none: this one, or of too many in all that with the
// most.
func (s *incompleteCalls) set(c *boundedConn, n int) *boundedConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.closed {
		return nil
	}
	before := s.conns[c]
	s.sum += n - before
	if s.conns == nil {
		s.conns = make(map[*boundedConn]int)
	}
	if s.conns[c] = n; n == 0 {
		delete(s.conns, c)
	}
	worst := c
	switch {
	case n > maxIncompleteEach:
	case n > before && s.sum > maxIncomplete:
		for other, k := range s.conns {
			if k > s.conns[worst] {
				worst = other
			}
		}
	default:
		return nil
	}
	s.dropLocked(worst)
	return worst
}

// isClosed reports whether drop was called for a connection.
func (s *incompleteCalls) isClosed(c *boundedConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.closed
}

// drop forgets a connection that closes.
func (s *incompleteCalls) drop(c *boundedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(c)
}

func (s *incompleteCalls) dropLocked(c *boundedConn) {
	c.closed = true
	s.sum -= s.conns[c]
	delete(s.conns, c)
}
