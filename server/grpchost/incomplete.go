package grpchost

import (
	"sync"

	"github.com/georld/rld/internal/connlimit"
)

// The bounds on calls that their client has not sent completely, among them
// open streams, of one connection and of all. Each call takes a goroutine or
// two, about 20 kB; bytes are what they hold of unfinished messages, and what
// calls hold of requests and answers.
const (
	maxIncompleteEach = 2 * maxStreamsEach
	maxIncomplete     = 1_024
	maxBytesEach      = 8 << 20
	maxBytes          = 16 << 20
)

// share is what incomplete calls take.
type share struct{ calls, bytes int }

// incompleteCalls sums what the incomplete calls of all connections take. The
// zero value is ready for use.
type incompleteCalls struct {
	mu    sync.Mutex
	sum   share
	conns map[*boundedConn]share // those with any
	held  map[*boundedConn]int   // bytes, of conns, of calls that wait
}

// set sets the share of a connection, without the bytes of calls that wait. It
// returns the connection to close because of it, nil for none, and the reason:
// this one, or of too much in all that with the most.
func (s *incompleteCalls) set(c *boundedConn, is share) (*boundedConn, connlimit.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is.bytes += s.held[c]
	return s.changeLocked(c, is)
}

// hold adds bytes of a call that waits, or takes them off. It returns what set
// does.
func (s *incompleteCalls) hold(c *boundedConn, bytes int) (*boundedConn, connlimit.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.closed {
		return nil, ""
	}
	if s.held == nil {
		s.held = make(map[*boundedConn]int)
	}
	if s.held[c] += bytes; s.held[c] == 0 {
		delete(s.held, c)
	}
	is := s.conns[c]
	is.bytes += bytes
	return s.changeLocked(c, is)
}

func (s *incompleteCalls) changeLocked(c *boundedConn, is share) (worst *boundedConn, r connlimit.Reason) {
	if c.closed {
		return nil, ""
	}
	before := s.conns[c]
	s.sum.calls += is.calls - before.calls
	s.sum.bytes += is.bytes - before.bytes
	if s.conns == nil {
		s.conns = make(map[*boundedConn]share)
	}
	if s.conns[c] = is; is == (share{}) {
		delete(s.conns, c)
	}
	switch {
	case is.calls > maxIncompleteEach:
		worst, r = c, connlimit.ReasonIncomplete
	case is.bytes > maxBytesEach:
		worst, r = c, connlimit.ReasonBytes
	case is.calls > before.calls && s.sum.calls > maxIncomplete:
		worst, r = s.most(c, func(x share) int { return x.calls }), connlimit.ReasonIncomplete
	case is.bytes > before.bytes && s.sum.bytes > maxBytes:
		worst, r = s.most(c, func(x share) int { return x.bytes }), connlimit.ReasonBytes
	default:
		return nil, ""
	}
	s.dropLocked(worst)
	return worst, r
}

// most returns the connection with the most of something, c for as much.
func (s *incompleteCalls) most(c *boundedConn, of func(share) int) *boundedConn {
	worst := c
	for other, x := range s.conns {
		if of(x) > of(s.conns[worst]) {
			worst = other
		}
	}
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
	s.sum.calls -= s.conns[c].calls
	s.sum.bytes -= s.conns[c].bytes
	delete(s.conns, c)
	delete(s.held, c)
}
