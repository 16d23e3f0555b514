package connlimit

import (
	"cmp"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/georld/rld/internal/loglimit"
)

// Reason is why a connection was closed.
type Reason string

// The reasons.
const (
	ReasonHandshake  Reason = "handshake"  // no handshake in time
	ReasonUnfinished Reason = "unfinished" // the oldest without a handshake, for a newer one
	ReasonIdle       Reason = "idle"       // idle, for a newer one
	ReasonSource     Reason = "source"     // its source has too many
	ReasonFull       Reason = "full"       // the listener has too many
	ReasonCancelled  Reason = "cancelled"  // it cancels too many calls
	ReasonIncomplete Reason = "incomplete" // too many of its calls are incomplete
	ReasonBytes      Reason = "bytes"      // its calls hold too many bytes
	ReasonPieces     Reason = "pieces"     // messages come in too many pieces
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{
		ReasonHandshake, ReasonUnfinished, ReasonIdle, ReasonSource, ReasonFull, ReasonCancelled, ReasonIncomplete,
		ReasonBytes, ReasonPieces,
	}
}

const (
	// HandshakeTimeout bounds the handshake of a connection.
	HandshakeTimeout = 2 * time.Second
	// idleAfter is how long nothing was read from an idle connection.
	idleAfter = 5 * time.Second
	// idleSteps bounds the search for an idle connection.
	idleSteps = 64
	// acceptRate is how many connections a listener hands on in a second, and
	// acceptBurst at once. The others wait in the kernel: a processor is left
	// for the work of other listeners.
	acceptRate, acceptBurst = 3_000, 10
	// logEvery is the least time between two log lines of one reason.
	logEvery = time.Minute
)

// Bounds are how many connections a listener may have.
type Bounds struct {
	// Established and Unfinished bound the connections after and before their
	// handshakes.
	Established, Unfinished int
	// Source bounds all connections of one source, see Options; 0 for no bound.
	Source int
}

// Options configures a Listener.
type Options struct {
	// Name names the listener in metrics and in the log.
	Name string
	Bounds
	// Handshake bounds the time of the handshake; 0 selects HandshakeTimeout.
	Handshake time.Duration
	// Keep never closes an established connection for another one.
	Keep bool
	// Log receives a line for each reason a minute, nil for none.
	Log *slog.Logger
	// Closed is called for each connection that is closed or not accepted, nil
	// for none. It may be called by several goroutines at a time.
	Closed func(r Reason, remote net.Addr)
}

// Listener bounds the connections of another listener. It is safe for
// concurrent use.
//
// A source is an IPv4 address, the first 64 bits of an IPv6 address, or
// everything that has neither, such as a unix socket. For a connection beyond a
// bound, the source with the most connections loses one: its oldest unfinished
// one, or an idle one. Where nothing is idle, the new connection is closed.
type Listener struct {
	net.Listener
	options Options
	lines   loglimit.Limiter
	start   time.Time
	accepts *rate.Limiter

	mu                      sync.Mutex
	unfinished, established pool
	closed                  map[Reason]uint64
}

// New returns a Listener. The bounds are at least 1.
func New(lis net.Listener, o Options) *Listener {
	o.Established, o.Unfinished = max(1, o.Established), max(1, o.Unfinished)
	o.Handshake = cmp.Or(o.Handshake, HandshakeTimeout)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Listener{
		Listener: lis, options: o, start: time.Now(),
		accepts: rate.NewLimiter(acceptRate, acceptBurst), closed: make(map[Reason]uint64),
	}
}

// Accept returns the next connection, a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &Conn{Conn: raw, listener: l, source: sourceOf(raw.RemoteAddr())}
		c.remote = Addr{Addr: raw.RemoteAddr(), conn: c}
		victim, reason := l.enter(c)
		if victim != nil {
			victim.End(reason)
		}
		if victim == c {
			continue
		}
		if d := l.accepts.Reserve().Delay(); d >= time.Millisecond { // less is no time to sleep
			time.Sleep(d)
		}
		return c, nil
	}
}

// enter makes a connection an unfinished one. It returns the connection to
// close for it, which may be itself, and the reason.
func (l *Listener) enter(c *Conn) (*Conn, Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var victim *Conn
	var reason Reason
	if l.options.Source > 0 && l.unfinished.of(c.source)+l.established.of(c.source) >= l.options.Source {
		if victim, reason = l.unfinished.oldest(c.source), ReasonUnfinished; victim == nil {
			victim, reason = l.idle(c.source), ReasonIdle
		}
		if victim == nil {
			return c, ReasonSource
		}
	} else if l.unfinished.count >= l.options.Unfinished {
		source, _ := l.unfinished.biggest()
		victim, reason = l.unfinished.oldest(source), ReasonUnfinished
	}
	if victim != nil {
		l.removeLocked(victim)
	}
	c.since = l.now()
	c.state = unfinished
	l.unfinished.add(c)
	c.timer = time.AfterFunc(l.options.Handshake, func() {
		switch {
		case !c.unfinished():
		case c.counted.Load():
			c.Close()
		default:
			c.End(ReasonHandshake)
		}
	})
	return victim, reason
}

// finish makes a connection an established one. It returns the connection to
// close for it, which may be itself, and the reason.
func (l *Listener) finish(c *Conn) (*Conn, Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.state != unfinished {
		return nil, ""
	}
	var victim *Conn
	if l.established.count >= l.options.Established {
		if source, ok := l.established.biggest(); ok {
			victim = l.idle(source)
		}
		if victim == nil {
			return c, ReasonFull
		}
		l.removeLocked(victim)
	}
	c.timer.Stop()
	l.unfinished.remove(c)
	c.state, c.since = established, l.now()
	c.readAt.Store(int64(c.since))
	l.established.add(c)
	return victim, ReasonIdle
}

// idle returns an idle connection of a source, or nil. It looks at those first
// that were established first, and moves the others to the end.
func (l *Listener) idle(source netip.Prefix) *Conn {
	conns := l.established.conns[source]
	if conns == nil || l.options.Keep {
		return nil
	}
	now := l.now()
	for range min(conns.Len(), idleSteps) {
		c := conns.Front().Value.(*Conn)
		if now-time.Duration(c.readAt.Load()) >= idleAfter {
			return c
		}
		conns.MoveToBack(conns.Front())
	}
	return nil
}

// removeLocked forgets a connection and reports whether it was known.
func (l *Listener) removeLocked(c *Conn) {
	switch c.state {
	case unfinished:
		c.timer.Stop()
		l.unfinished.remove(c)
	case established:
		l.established.remove(c)
	}
	c.state = gone
}

// remove forgets a connection.
func (l *Listener) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(c)
}

// count counts a closed connection and logs it.
func (l *Listener) count(r Reason, remote net.Addr) {
	l.mu.Lock()
	l.closed[r]++
	of := l.unfinished.count + l.established.count
	l.mu.Unlock()
	if l.options.Closed != nil {
		l.options.Closed(r, remote)
	}
	if l.lines.Due(string(r), time.Now(), logEvery) {
		l.options.Log.Warn("connection closed by a bound", "listener", l.options.Name, "reason", string(r),
			"remote", remote.String(), "connections", of)
	}
}

// now returns the time since the start of the listener.
func (l *Listener) now() time.Duration { return time.Since(l.start) }

// Stats describes a listener.
type Stats struct {
	Name                    string
	Established, Unfinished int
	Bounds                  Bounds
	Closed                  map[Reason]uint64 // since the start; owned by the caller
}

// Stats returns the present numbers.
func (l *Listener) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{
		Name: l.options.Name, Bounds: l.options.Bounds,
		Established: l.established.count, Unfinished: l.unfinished.count, Closed: maps.Clone(l.closed),
	}
}

// FinishHTTP is a ConnState of an http.Server: a connection is finished with
// the headers of its first request.
func FinishHTTP(c net.Conn, s http.ConnState) {
	if s == http.StateActive {
		if of := Of(c.RemoteAddr()); of != nil {
			of.Finish()
		}
	}
}
