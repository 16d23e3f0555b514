package daemon

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/internal/loglimit"
	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/lease"
	"github.com/georld/rld/sticky/route"
	"github.com/georld/rld/wire"
)

// strict drives the replica.Process of a daemon: it locks the machine, keeps
// its timer, sends its frames and blocks the calls that wait. It is safe for
// concurrent use. Shards call it while they are locked, so it never locks one
// while it holds the machine.
type strict struct {
	engine   *Engine
	log      *slog.Logger
	cfg      replica.Config
	acceptor *acceptorLoop
	calls    sync.Pool // of *waiter
	// send hands a frame to a peer's queue; nil before there are streams.
	send atomic.Pointer[func(to crdt.Incarnation, frame []byte) bool]
	// observe gets the time that each call waited, unless it is nil.
	observe func(time.Duration)

	routes atomic.Pointer[replica.Routes] // of the process
	now    func() time.Duration           // monotonic
	timer  *time.Timer
	lost   uint64 // lease.Stats.Lost, as of the last log line; of tick alone
	// nameOf returns the name of a peer for logs; nil before there are streams.
	nameOf  atomic.Pointer[func(crdt.Incarnation) string]
	notices loglimit.Limiter

	mu      sync.Mutex
	process *replica.Process
	wake    time.Duration // when timer fires
}

// newStrict returns the part of an engine that is made later.
func newStrict(c replica.Config, n *acceptorLoop, log *slog.Logger) *strict {
	s := &strict{log: log, acceptor: n, cfg: c, wake: math.MaxInt64, timer: time.NewTimer(math.MaxInt64)}
	s.calls.New = func() any {
		w := &waiter{woken: make(chan struct{}, 1)}
		w.Tag = w
		return w
	}
	return s
}

// serve binds the part to its engine.
func (s *strict) serve(e *Engine) {
	s.engine, s.now = e, func() time.Duration { return e.Now().Mono }
	s.cfg.Self, s.cfg.Shards = e.Incarnation(), len(e.shards)
	s.process = replica.New(s.cfg)
	s.routes.Store(s.process.Reach.Routes())
}

// Routing is part of lease.Owners.
func (s *strict) Routing() *route.Routing { return s.acceptor.view.Load() }

// Reach is part of lease.Owners.
func (s *strict) Reach(of crdt.Incarnation) (wait time.Duration, open bool) {
	return s.Routes().Reach(s.now, of)
}

// With runs do on the machine, then publishes what shards read of it, sets the
// timer and logs what happened. It is part of replica.Parts.
func (s *strict) With(do func(*replica.Process)) {
	for _, c := range s.locked(do) {
		s.logChange(&c)
	}
}

func (s *strict) locked(do func(*replica.Process)) []replica.PathChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(s.process)
	if r := s.process.Reach.Routes(); r != s.routes.Load() {
		s.routes.Store(r)
	}
	if wake := s.process.Wake(); wake < s.wake {
		s.wake = wake
		s.timer.Reset(wake - s.now())
	}
	return s.process.Reach.Changes()
}

// logChange logs that a breaker changed its state.
func (s *strict) logChange(c *replica.PathChange) {
	owner := c.Region + "/" + c.Name
	switch c.To {
	case breaker.Open:
		s.log.Warn("the circuit breaker of an owner is open: it is not asked, and on_failure decides",
			"event", "circuit_breaker_open", "owner", owner, "failed", c.Failures, "calls", c.Calls, "was", c.From.String())
	case breaker.HalfOpen:
		s.log.Info("the circuit breaker of an owner is half-open: one call is let through",
			"event", "circuit_breaker_half_open", "owner", owner)
	default:
		s.log.Info("the circuit breaker of an owner is closed: it is asked again", "event", "circuit_breaker_closed", "owner", owner)
	}
}

// Circuits describes the paths to the owners.
func (s *strict) Circuits() (all []replica.Circuit) {
	s.With(func(p *replica.Process) { all = p.Reach.Circuits(s.now()) })
	return all
}

// peers sets the daemons that are live.
func (s *strict) peers(at node.Instant, self crdt.Incarnation, live []gossip.Peer) {
	s.With(func(p *replica.Process) { p.Reach.Peers(at.Mono, live) })
	s.acceptor.peers(at, self, live)
}

// run drives the timers of the machine until ctx ends.
func (s *strict) run(ctx context.Context) {
	defer s.timer.Stop()
	s.tick()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.timer.C:
			s.tick()
		}
	}
}

// tick runs the timers that are due.
func (s *strict) tick() {
	var r replica.Ready
	s.With(func(p *replica.Process) {
		s.wake = math.MaxInt64
		r = p.Tick(s.now())
		for _, c := range r.Late {
			wake(c)
		}
	})
	for _, to := range r.Flush {
		s.Flush(to)
	}
	if r.Measure {
		links := s.engine.Links(s.engine.Now())
		s.With(func(p *replica.Process) { p.Reach.Measure(links) })
		s.acceptor.clocks(s.engine)
		if n := s.engine.StrictStats().Lost; n != s.lost {
			s.log.Info("another owner had higher watermarks of some keys: all below them counts as used",
				"event", "takeover", "keys", n-s.lost)
			s.lost = n
		}
	}
}

// Routes is part of replica.Parts.
func (s *strict) Routes() *replica.Routes { return s.routes.Load() }

// StepStrict is part of replica.Parts. The acceptor answers from its own
// goroutine.
func (s *strict) StepStrict(m *sticky.Message) []sticky.Message {
	var after afterUnlock
	set, acceptor := replica.Recipients(m, s.cfg.Shards)
	at, rejected := s.engine.Now(), 0
	each(set, func(i int) {
		s.engine.in(i, func(n *node.Node) {
			rejected += n.StepLease(at, m)
			after.collect(at, s, i, n)
			if n.Expedited() {
				after.expedite |= 1 << i
			}
		})
	})
	if acceptor && s.acceptor.receive(s.engine, m) != nil {
		rejected++
	}
	if rejected > 0 {
		s.noteRejected(m.From, rejected)
	}
	if after.expedite != 0 {
		s.engine.expedite(after.expedite)
	}
	return after.messages
}

// rejectedEach is the time between two lines about rejected items of a peer.
const rejectedEach = time.Minute

// noteRejected logs that items of a peer were rejected. Some come late, after
// the owner of a key has changed.
func (s *strict) noteRejected(from crdt.Incarnation, items int) {
	nameOf := s.nameOf.Load()
	if nameOf == nil {
		return
	}
	if peer := (*nameOf)(from); s.notices.Due(peer, time.Now(), rejectedEach) {
		s.log.Info("items about strict keys are rejected: they are late, or the peer may not send them",
			"event", "strict_rejected", "peer", peer, "items", items)
	}
}

// Flush is part of replica.Parts. It encodes each message for a frame of its
// own, and hands it to the stream of the peer.
func (s *strict) Flush(to crdt.Incarnation) {
	var m sticky.Message
	more := false
	next := func(p *replica.Process) { m, more = p.Outbox.Next(s.now(), to) }
	for s.With(next); more; {
		frame, err := wire.EncodeStrict(nil, &m)
		send := s.send.Load()
		sent := err == nil && send != nil && (*send)(to, frame)
		s.With(func(p *replica.Process) {
			p.Outbox.Done(s.now(), &m, sent, err)
			next(p)
		})
	}
}

var (
	_ lease.Owners  = (*strict)(nil)
	_ replica.Parts = (*strict)(nil)
)
