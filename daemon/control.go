package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/control/revocation"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/certs"
	"github.com/georld/rld/internal/loglimit"
	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/wire"
)

// controlLoop runs the control log of a daemon: a control.Node with a journal
// on disk. A goroutine of its own writes the journal, so that a slow or failing
// disk delays what depends on it and nothing else. It is safe for concurrent
// use, and not locked while it writes.
type controlLoop struct {
	log     *slog.Logger
	config  control.Config
	storage replica.Storage
	events  *controlEvents
	news    chan struct{} // holds a token when a turn is due
	limits  chan struct{} // signals a change of the limits, nil without a reader
	written chan struct{} // the news of the rights agent, nil for nobody
	// acceptor is the news of the acceptor, nil for nobody, and seen is what it
	// was notified of last.
	acceptor chan struct{}
	seen     layoutsView
	faulty   loglimit.Limiter

	// identity is what streams prove, not nil after open.
	identity atomic.Pointer[control.Identity]

	mu   sync.Mutex
	node *control.Node // nil until the journal is open
	// unopened is the node of a journal that can be read, and not be written
	// again: its limits count, and it does nothing.
	unopened *control.Node
	// renewed reports that the streams have another identity.
	renewed bool
	// disk is nil for a diskless daemon. It belongs to the writer while writing
	// is true. While rewriting is true the node stands still: its journal is
	// replaced by a snapshot.
	disk               *replica.ControlLog
	writing, rewriting bool
	fault              string        // why the journal is not open, "" if it is
	due                time.Duration // when to open it again
	self               crdt.Incarnation
	live               []control.Peer // by membership, with this daemon
	// early holds the latest message of each daemon that is not live yet.
	early   map[crdt.Incarnation]*control.Message
	leaving bool
	// revision is that of the limits when news of them was sent last, and
	// waiting are the channels of callers that wait for a command's result.
	revision control.Revision
	waiting  map[control.Number][]chan<- control.Result
}

// controlWrite is one write of the journal: items to append, or a snapshot that
// replaces it.
type controlWrite struct{ items, snapshot [][]byte }

// reopenEvery is the time between two attempts to open the journal.
const reopenEvery = 10 * time.Second

// newControlLoop returns a loop before open.
func newControlLoop(c control.Config, s replica.Storage, log *slog.Logger) *controlLoop {
	s.RefuseDamage = true
	return &controlLoop{
		log: log, config: c, storage: s, events: &controlEvents{log: log}, news: make(chan struct{}, 1),
		early: map[crdt.Incarnation]*control.Message{}, waiting: map[control.Number][]chan<- control.Result{},
	}
}

// controlStreams are the streams to peers.
type controlStreams interface {
	// Send hands a frame to a peer's queue.
	Send(crdt.Incarnation, []byte) bool
	// Renew ends all streams, so that peers get the present identity.
	Renew()
}

// run takes turns until ctx ends.
func (c *controlLoop) run(ctx context.Context, e *Engine, streams controlStreams) {
	writes := make(chan controlWrite, 1) // one is under way at a time
	var writer sync.WaitGroup
	writer.Go(func() {
		for w := range writes {
			c.write(e, &w)
		}
	})
	defer writer.Wait()
	defer close(writes)
	takeTurns(ctx, e, c.news, func() time.Duration { return c.turn(e, writes, streams) })
}

// turn does the work that is due, and returns when the next turn is.
func (c *controlLoop) turn(e *Engine, writes chan<- controlWrite, streams controlStreams) time.Duration {
	c.reopen(e)
	ready, renewed, w := c.step(e)
	if renewed { // before the first message under this id
		streams.Renew()
	}
	for i := range ready.Messages {
		c.post(&ready.Messages[i], streams.Send)
	}
	c.events.add(ready.Events)
	if w != nil {
		writes <- *w
	}
	return ready.Wake
}

// step runs the timers and returns the work that is due, whether the identity
// of the daemon is another one, and the write that the caller must hand to the
// writer.
func (c *controlLoop) step(e *Engine) (control.Ready, bool, *controlWrite) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := e.Now()
	if c.node == nil || c.rewriting {
		return control.Ready{Wake: at.Mono + time.Second}, false, nil
	}
	c.node.Tick(at.Mono, at.Wall/int64(time.Millisecond))
	ready := c.node.Ready(at.Mono)
	c.finish(ready.Results)
	if is := c.node.Limits().Revision(); is != c.revision {
		c.revision = is
		notify(c.limits)
	}
	if is := layoutsOf(c.node); is != c.seen {
		c.seen = is
		notify(c.acceptor)
	}
	renewed := c.renewed
	c.renewed = false
	if ready.Former != (control.ID{}) {
		is := c.node.Identity()
		c.identity.Store(&is)
		renewed = true
	}
	c.name(ready.Events)
	switch {
	case len(ready.Store) > 0:
		c.writing = true
		return ready, renewed, &controlWrite{items: ready.Store}
	case !c.writing && c.disk.ShouldCompact():
		c.writing, c.rewriting = true, true
		return ready, renewed, &controlWrite{snapshot: c.node.Snapshot()}
	}
	return ready, renewed, nil
}

// name adds the names of daemons to events with their ids. The caller holds
// c.mu.
func (c *controlLoop) name(events []control.Event) {
	for i := range events {
		e := &events[i]
		if e.Kind != control.VoterAdded && e.Kind != control.VoterRemoved {
			continue
		}
		if e.Text == c.node.ID().String() {
			e.Text = c.config.Region + "/" + c.config.Name + ", " + e.Text
			continue
		}
		for _, p := range c.node.Status().Peers {
			if p.Age >= 0 && p.Sender.ID.String() == e.Text {
				e.Text = p.Region + "/" + p.Name + ", " + e.Text
				break
			}
		}
	}
}

// write writes the journal and reports the result to the node.
func (c *controlLoop) write(e *Engine, w *controlWrite) {
	var err error
	if w.snapshot != nil {
		if err = c.disk.Rewrite(w.snapshot); err != nil {
			c.log.Warn("the journal of the control log could not be rewritten: it grows", "error", err)
		}
	} else {
		err = c.disk.Append(w.items, c.snapshot)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := e.Now().Mono
	switch {
	case w.snapshot != nil:
	case err != nil:
		c.node.Failed(at, err)
	default:
		c.node.Stored(at)
		notify(c.written)
	}
	c.writing, c.rewriting = false, false
	notify(c.news)
}

// snapshot returns items that replace all of the journal.
func (c *controlLoop) snapshot() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node.Snapshot()
}

// post sends a message.
func (c *controlLoop) post(m *control.Message, send func(crdt.Incarnation, []byte) bool) {
	frame, err := wire.EncodeControl(nil, m)
	if err == nil {
		send(m.To, frame)
	} else if c.faulty.Due("", time.Now(), time.Minute) {
		c.log.Error("a message of the control log cannot be sent: this is a defect of rld", "error", err)
	}
}

// maxEarly bounds the daemons that are not live and have sent a message.
const maxEarly = 256

// receive handles a message of a peer. During a rewrite it is lost, as it may
// be on its way. A peer that membership does not know yet is no fault.
func (c *controlLoop) receive(e *Engine, m *control.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node == nil || c.rewriting {
		return nil
	}
	at := e.Now()
	err := c.node.Receive(at.Mono, at.Wall/int64(time.Millisecond), m)
	notify(c.news)
	switch {
	case errors.Is(err, control.ErrUncounted):
		return nil // the node asks which of the runs is live
	case !errors.Is(err, control.ErrUnknownSender):
		return err
	}
	if small := m.Base == nil && m.Entries == nil && m.Raft == nil && m.Requests == nil; small && m.To == c.self {
		if len(c.early) >= maxEarly {
			clear(c.early)
		}
		c.early[m.From] = m
	}
	return nil
}

// peers sets the live daemons, none while this one has no part in the log.
func (c *controlLoop) peers(at node.Instant, self crdt.Incarnation, members []gossip.Member) {
	live := make([]control.Peer, len(members))
	for i, m := range members {
		live[i] = control.Peer{Address: m.ID, Name: m.Name, Region: m.Region}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.self == self && slices.Equal(c.live, live) {
		return
	}
	c.self, c.live = self, live
	c.meet(at)
}

// meet hands the live daemons to the node, and their first messages. The caller
// holds c.mu.
func (c *controlLoop) meet(at node.Instant) {
	if c.node == nil {
		return
	}
	c.node.Peers(at.Mono, c.self, c.live)
	for _, p := range c.live {
		if m := c.early[p.Address]; m != nil && !c.rewriting {
			delete(c.early, p.Address)
			_ = c.node.Receive(at.Mono, at.Wall/int64(time.Millisecond), m) // as if it came now
		}
	}
	notify(c.news)
}

// leave makes the daemon give its vote away.
func (c *controlLoop) leave() {
	c.mu.Lock()
	c.leaving = true
	c.mu.Unlock()
	c.Do(func(n *control.Node) { n.Leave() })
}

// handsOver reports whether another daemon takes the vote of this one.
func (c *controlLoop) handsOver() (over bool) {
	c.Do(func(n *control.Node) { over = n.Status().HandsOver })
	return over
}

// unready returns why the daemon is not ready, nil if it is. A cluster that has
// not begun is no reason: nothing that answers calls depends on it.
func (c *controlLoop) unready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node == nil {
		return nil
	}
	switch s := (&report.ControlState{Status: c.node.Status()}); {
	case s.ForeignToAll():
		return errors.New("all peers belong to another cluster: correct the addresses, or give this daemon a new state.dir")
	case s.Status.Unread != 0:
		return errors.New(report.Unread(&s.Status))
	case s.Status.Diverged:
		return errors.New("the record of the cluster differs from that of the leader, which replaces it")
	}
	return nil
}

// Do is part of report.Control.
func (c *controlLoop) Do(by func(*control.Node)) bool {
	done := c.peek(by)
	notify(c.news)
	return done
}

// peek runs a function on the node, which sends nothing soon. It returns false
// if the log is not open.
func (c *controlLoop) peek(by func(*control.Node)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node == nil {
		return false
	}
	by(c.node)
	return true
}

// peekLimits is peek for the limits: it also runs the function on the node of a
// journal that can only be read.
func (c *controlLoop) peekLimits(by func(*control.Node)) bool {
	if c.peek(by) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unopened == nil {
		return false
	}
	by(c.unopened)
	return true
}

// State is part of report.Control.
func (c *controlLoop) State() report.ControlState {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := report.ControlState{
		Founders: c.config.Founders, Durable: c.config.Durable, Fault: c.fault, Events: c.events.counted(), Differ: c.events.founders(),
	}
	if c.node != nil {
		s.Status, s.Record = c.node.Status(), c.node.Record()
	} else if c.unopened != nil {
		s.Record = c.unopened.Record()
	}
	return s
}

// listed returns the regions of the record, and those of its voters: a witness
// has a region that is not in the record. It is nil without a record.
func (c *controlLoop) listed() []string {
	names := c.regions()
	c.peek(func(n *control.Node) {
		if r := n.Record(); r != nil {
			for _, v := range r.Voters {
				names = append(names, v.Region)
			}
		}
	})
	return names
}

// regions returns the regions of the record by name, nil without a record.
func (c *controlLoop) regions() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node == nil || c.node.Record() == nil {
		return nil
	}
	all := c.node.Record().Regions
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}

// regionOf returns the region of a voter or a founder of the record by its id,
// "" for others.
func (c *controlLoop) regionOf(id control.ID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node == nil || c.node.Record() == nil {
		return ""
	}
	r := c.node.Record()
	for i := range r.Voters {
		if v := &r.Voters[i]; v.Daemon == id && !v.Former {
			return v.Region
		}
	}
	for i := range r.Regions {
		if slices.Contains(r.Regions[i].Founders, id) {
			return r.Regions[i].Name
		}
	}
	return ""
}

// revoked reports whether the record has a daemon as revoked.
func (c *controlLoop) revoked(name certs.Name) (is bool) {
	c.peek(func(n *control.Node) {
		r := n.Record()
		is = r != nil && r.Revoked.Has(revocation.Name{Region: name.Region, Daemon: name.Daemon})
	})
	return is
}

var _ report.Control = (*controlLoop)(nil)
