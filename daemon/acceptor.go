package daemon

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
	"github.com/georld/rld/telemetry"
)

// acceptorLoop runs a replica.AcceptorLoop with a journal on disk. Messages
// that arrive during a write go into the next write. It is safe for concurrent
// use and not locked while it writes.
type acceptorLoop struct {
	log  *slog.Logger
	view atomic.Pointer[route.Routing]
	news chan struct{} // holds a token when a turn is due

	mu       sync.Mutex
	loop     *replica.AcceptorLoop // nil before open
	counts   telemetry.Journal
	rejected uint64 // messages
	fault    string // why nothing can be stored any more, "" when it can

	// layouts returns what the control log has, and report gives it the state
	// of the acceptor. Both are set before run.
	layouts func() layoutsView
	report  func(quorum.Report)

	// Of the goroutine of run alone, once that runs.
	disk     *replica.AcceptorLog
	config   quorum.Config
	storage  func() replica.Storage
	rewrites uint64 // before it was opened last
}

func newAcceptorLoop(log *slog.Logger) *acceptorLoop {
	n := &acceptorLoop{log: log, news: make(chan struct{}, 1)}
	n.view.Store(new(route.Routing))
	return n
}

// expedite makes the loop take a turn soon.
func (n *acceptorLoop) expedite() {
	notify(n.news)
}

// with runs do on the machine, unless it is not open yet, and publishes the
// routing for shards.
func (n *acceptorLoop) with(do func(*replica.AcceptorLoop)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.loop != nil {
		do(n.loop)
		n.view.Store(n.loop.Acceptor.Routing())
	}
}

// do runs by on the acceptor, unless it is not open yet.
func (n *acceptorLoop) do(by func(*quorum.Acceptor)) {
	n.with(func(l *replica.AcceptorLoop) { by(l.Acceptor) })
}

// receive handles a message to the acceptor. The error is that of a rejected
// one.
func (n *acceptorLoop) receive(e *Engine, m *sticky.Message) (err error) {
	at := e.Now()
	now := e.Time(at)
	n.with(func(l *replica.AcceptorLoop) {
		if err = l.Receive(at.Mono, now, m); err != nil {
			n.rejected++
		}
	})
	n.expedite()
	return err
}

// peers sets the daemons that are live.
func (n *acceptorLoop) peers(at node.Instant, self crdt.Incarnation, live []gossip.Peer) {
	n.with(func(l *replica.AcceptorLoop) { l.Peers(at.Mono, self, live) })
	n.expedite()
}

// clocks sets how far the clocks of the peers are apart.
func (n *acceptorLoop) clocks(e *Engine) {
	at := e.Now()
	now, offsets := e.Time(at), e.Offsets()
	n.with(func(l *replica.AcceptorLoop) { l.Clocks(at.Mono, now, offsets) })
	n.expedite()
}

// run takes turns until ctx ends.
func (n *acceptorLoop) run(ctx context.Context, s *strict) {
	takeTurns(ctx, s.engine, n.news, func() time.Duration { return n.turn(s) })
}

// turn does the work that is due, and returns when the next turn is.
func (n *acceptorLoop) turn(s *strict) time.Duration {
	n.reopen(s.engine.Now().Mono)
	var ready quorum.Ready
	step := func(next func(*replica.AcceptorLoop, time.Duration, hlc.Timestamp) quorum.Ready) {
		at := s.engine.Now()
		now := s.engine.Time(at)
		view := n.layouts()
		var report quorum.Report
		n.with(func(l *replica.AcceptorLoop) {
			l.Follow(at.Mono, view.active, view.announced)
			l.Confirmed(view.confirmed)
			ready = next(l, at.Mono, now)
			report = l.Acceptor.Report()
		})
		n.report(report)
		replica.Route(ready.Messages, s)
		n.logEvents(ready.Events)
	}
	step((*replica.AcceptorLoop).Turn)
	for len(ready.Store) > 0 {
		err := n.store(ready.Store)
		step(func(l *replica.AcceptorLoop, at time.Duration, now hlc.Timestamp) quorum.Ready {
			return l.Stored(at, now, err)
		})
	}
	n.compact()
	return ready.Wake
}

// store appends entries to the journal with one sync.
func (n *acceptorLoop) store(entries []quorum.Entry) error {
	if n.disk == nil { // of a diskless daemon
		return nil
	}
	begin := time.Now()
	err := n.disk.Append(entries, n)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts.Writes++
	n.counts.Entries += uint64(len(entries))
	n.counts.Writing += time.Since(begin)
	n.counts.Bytes, n.counts.Rewrites = n.disk.Size(), n.rewrites+n.disk.Rewrites()
	if err != nil {
		n.counts.Failures++
		n.fault = err.Error()
	}
	return err
}

// Snapshot implements replica.State.
func (n *acceptorLoop) Snapshot() (all [][]byte) {
	n.with(func(l *replica.AcceptorLoop) { all = l.Snapshot() })
	return all
}

// Rewritten implements replica.State.
func (n *acceptorLoop) Rewritten() { n.with((*replica.AcceptorLoop).Rewritten) }

// compact rewrites the journal when most of it is out of date.
func (n *acceptorLoop) compact() {
	if !n.disk.ShouldCompact() {
		return
	}
	lost, err := n.disk.Compact(n)
	if err != nil && !lost {
		n.log.Warn("the journal of strict keys could not be rewritten: it grows", "error", err)
	}
	n.with(func(l *replica.AcceptorLoop) {
		n.counts.Bytes, n.counts.Rewrites = n.disk.Size(), n.rewrites+n.disk.Rewrites()
		if err != nil {
			n.counts.Failures++
		}
		if lost {
			n.fault = err.Error()
			l.Acceptor.Failed(err)
			n.expedite() // turn notes when to open it again
		}
	})
}

// logEvents logs the events of the acceptor.
func (n *acceptorLoop) logEvents(events []quorum.Event) {
	for i := range events {
		ev := &events[i]
		level := slog.LevelInfo
		switch ev.Kind {
		case quorum.Rejected, quorum.StoreFailed, quorum.LostDisk, quorum.ClockOff, quorum.EndedAhead:
			level = slog.LevelWarn
		}
		logState(n.log.With("event", "strict"), level, "strict keys: "+ev.Kind.String(), ev.Text, ev.Peer)
	}
}

// logState logs an event of an agent or an acceptor. peer is the daemon that
// caused it, "" for this one.
func logState(log *slog.Logger, level slog.Level, kind, text, peer string) {
	if peer != "" {
		log = log.With("peer", peer)
	}
	log.Log(context.Background(), level, kind, "detail", text)
}
