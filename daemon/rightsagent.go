package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/wire"
)

// rightsLoop runs a replica.RightsLoop with a file on disk, or without one at a
// diskless daemon, and answers the shards. It is safe for concurrent use.
// Shards call it while they are locked, so it never locks one while it is
// locked, and it is not locked while it writes. It has an agent for as long as
// the record of the control log has the region of the daemon: see follow.
type rightsLoop struct {
	log     *slog.Logger
	storage replica.Storage
	config  agent.Config // but for what the record has
	control *controlLoop // nil in tests with an agent of their own

	// left is what the former run
	// left, until the agent begins; nil for none. resume lets the nodes use it.
	left   *replica.Leftover
	resume func()

	lock    io.Closer // locks the folder while the process runs, nil while the disk fails
	version atomic.Uint64
	news    chan struct{} // holds a token when a turn is due

	mu   sync.Mutex
	loop replica.RightsLoop // its Agent is nil without a record
	// why is why there is no agent.
	why  epoch.Reason
	set  *rules.Set
	self crdt.Incarnation
	live []gossip.Peer

	// The rest belongs to turn.
	of        participant
	followed  control.Version // that the agent has
	confirmed bool
	number    uint64        // of the record that was stored last
	stored    bool          // that is on disk, and the statement that it is there is not
	retry     time.Duration // when to read the file again
	fault     string        // of the disk, "" while it works
	proposal  control.Number
	waits     string // what was logged about a missing agent
}

// openAgent prepares the rights agent of a daemon, none for one that holds no
// rights, and locks its folder.
func (d *daemon) openAgent() error {
	c := &d.Config
	switch {
	case c.Witness():
		var err error
		if d.lock, err = d.storage(forControl).Folder.Lock(replica.FolderLock); err != nil {
			return fmt.Errorf("state.dir: %w", err)
		}
		return nil
	case c.Region == "" || c.NoRights() != "":
		return nil
	}
	f := &rightsLoop{
		log: d.Log, storage: d.storage(forRights), news: make(chan struct{}, 1), why: epoch.ReasonNoCluster,
		config: agent.Config{
			Region: c.Region, Name: c.Name, DaemonHorizon: c.Rights.DaemonHorizon, Period: c.Rights.Period,
			Diskless: c.State.Diskless,
		},
	}
	if c.Rights.DaemonHorizon == 0 {
		f.config.DaemonHorizon = -1
	}
	d.agent = f
	switch err := f.lockFolder(); {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EIO): // it tries again
		f.failed(node.Instant{}, err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES):
		return fmt.Errorf("state.dir: %w: the daemon must write there: make the folder and its disk writable for its user", err)
	case err != nil: // another process uses the folder, or it cannot be one
		return fmt.Errorf("state.dir: %w", err)
	}
	return nil
}

// lockFolder locks the folder. Two processes that went on from one record would
// use every right twice. A diskless daemon has none.
func (f *rightsLoop) lockFolder() error {
	if f.storage.Diskless {
		return nil
	}
	lock, err := f.storage.Folder.Lock(replica.FolderLock)
	if err == nil {
		f.lock = lock
	}
	return err
}

// closeState closes the files of the control log, the acceptor and the rights
// agent.
func (d *daemon) closeState() {
	if d.limits != nil && d.limits.close != nil {
		d.limits.close()
	}
	if d.control != nil {
		d.control.close()
	}
	if d.strict != nil {
		d.strict.acceptor.close()
	}
	if d.agent != nil && d.agent.lock != nil {
		d.agent.lock.Close()
	}
	if d.lock != nil {
		d.lock.Close()
	}
}

// with runs do on the machine and publishes the version of the shares.
func (f *rightsLoop) with(do func(*replica.RightsLoop)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop.Agent == nil {
		return
	}
	before := f.loop.Agent.Version()
	do(&f.loop)
	f.version.Add(f.loop.Agent.Version() - before)
}

// do runs by on the agent, if there is one, and makes the loop take a turn
// soon.
func (f *rightsLoop) do(by func(*agent.Agent)) {
	f.with(func(l *replica.RightsLoop) { by(l.Agent) })
	notify(f.news)
}

// read returns what by returns for the agent, and the zero value without one.
func read[T any](f *rightsLoop, by func(*agent.Agent) T) (out T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop.Agent != nil {
		out = by(f.loop.Agent)
	}
	return out
}

// run takes turns until ctx ends. send hands a frame to a peer's queue.
func (f *rightsLoop) run(ctx context.Context, e *Engine, send func(crdt.Incarnation, []byte) bool) {
	takeTurns(ctx, e, f.news, func() time.Duration { return f.turn(e.Now(), e, send) })
}

// turn does the work that is due, and returns when the next turn is.
func (f *rightsLoop) turn(at node.Instant, e *Engine, send func(crdt.Incarnation, []byte) bool) time.Duration {
	again := f.follow(at)
	now := e.Time(at)
	due, off := false, false
	e.in(0, func(n *node.Node) { off = node.ClockContradicted(n) })
	f.with(func(l *replica.RightsLoop) { due = l.CountDue(at.Mono) })
	var offered map[uint64]uint64
	if due {
		offered = e.Offered()
	}
	ready := agent.Ready{Wake: again}
	f.with(func(l *replica.RightsLoop) {
		for rule, hits := range offered {
			l.Agent.Demand(rule, hits)
		}
		ready = l.Turn(at.Mono, now, off)
	})
	f.post(&ready, send)
	for ready.Store != nil || f.stored {
		var err error
		if !f.stored {
			f.number = ready.Store.Number
			err = f.storage.StoreRights(ready.Store)
		}
		if f.stored = err == nil && !f.holds(); f.stored {
			break // until the statement is on disk, too
		}
		f.with(func(l *replica.RightsLoop) { ready = l.Stored(at.Mono, err) })
		f.post(&ready, send)
	}
	return min(ready.Wake, again)
}

// post sends the messages of a turn, and logs its events.
func (f *rightsLoop) post(ready *agent.Ready, send func(crdt.Incarnation, []byte) bool) {
	for i := range ready.Messages {
		m := &ready.Messages[i]
		frame, err := wire.EncodeRights(nil, m)
		if err != nil {
			f.log.Error("a message about rights cannot be sent", "error", err)
			continue
		}
		send(m.To, frame)
	}
	if ready.Proposal != nil {
		f.propose(ready.Proposal)
	}
	for _, ev := range ready.Events {
		logState(f.log, logRights(ev.Kind), "rights: "+ev.Kind.String(), ev.Text, ev.Peer)
	}
}

// receive handles a message of a peer.
func (f *rightsLoop) receive(at node.Instant, now int64, m *agent.Message) error {
	var err error
	f.do(func(a *agent.Agent) { err = a.Receive(at.Mono, now, m) })
	return err
}

// peers sets the daemons that are live.
func (f *rightsLoop) peers(at node.Instant, self crdt.Incarnation, peers []gossip.Peer) {
	f.mu.Lock()
	f.self, f.live = self, peers
	f.mu.Unlock()
	f.do(func(a *agent.Agent) { a.Peers(at.Mono, self, peers) })
}

// rules sets the rules in force.
func (f *rightsLoop) rules(set *rules.Set) {
	f.mu.Lock()
	f.set = set
	f.mu.Unlock()
	f.do(func(a *agent.Agent) { a.Rules(replica.RightsRules(set)) })
}

// Left is part of replica.Rights.
func (f *rightsLoop) Left() bool {
	return !read(f, func(a *agent.Agent) bool { return !a.Left() })
}

// Stop is part of replica.Rights.
func (f *rightsLoop) Stop() { f.do((*agent.Agent).Stop) }

// Stopped is part of replica.Rights.
func (f *rightsLoop) Stopped() bool {
	return !read(f, func(a *agent.Agent) bool { return !a.Stopped() })
}

// Status returns the state of the agent.
func (f *rightsLoop) Status() agent.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop.Agent == nil {
		return agent.Status{Reason: f.why, Failing: f.fault}
	}
	return f.loop.Agent.Status()
}

// WhyNot returns a reason of Allotment or Status as half a sentence, with the
// remedy where this daemon knows it.
func (f *rightsLoop) WhyNot(why epoch.Reason) string {
	var log report.ControlState
	if f.control != nil {
		log = f.control.State()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	failing := f.fault
	if f.loop.Agent != nil {
		failing = f.loop.Agent.Status().Failing
	}
	begins, ahead := f.loop.Agent == nil && why == f.why, why == epoch.ReasonAhead
	switch {
	case begins && log.Fault != "":
		return "the control log of this daemon is not open: " + log.Fault
	case begins && why == epoch.ReasonWaiting && failing != "":
		return "the record of rights cannot be used: " + failing
	case ahead && failing != "":
		return "the record of rights cannot be stored: " + failing
	case ahead && log.Status.Failing != "": // which states that the record is there
		return "the control log of this daemon cannot be stored: " + log.Status.Failing
	case f.loop.Agent == nil && why == f.why && f.waits != "":
		return f.waits
	case why == epoch.ReasonAlone && f.config.Diskless:
		return "too few daemons with a disk of region " + f.config.Region + " extend the rights of this diskless daemon: " +
			"start those that are down, or let this one reach them (rld daemon list)"
	case why == epoch.ReasonLeftOut && f.loop.Agent != nil && agent.Stranded(f.loop.Agent):
		return "left out of an epoch, and it reaches none of those that hold the rights of region " + f.config.Region +
			": start them, or let this one reach them; if none of them can return (a diskless one cannot), " +
			"stop all daemons of the region, remove it with --stopped, and add it again"
	}
	return why.String()
}

// horizon returns the end of the windows in which this daemon may use its
// rights, in Unix milliseconds: see agent.Held.
func (f *rightsLoop) horizon() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop.Agent == nil {
		return math.MaxInt64
	}
	return agent.Held(f.loop.Agent)
}

// Weights returns the weights of the regions for a rule.
func (f *rightsLoop) Weights(rule uint64) []agent.MemberStatus {
	return read(f, func(a *agent.Agent) []agent.MemberStatus { return a.Weights(rule) })
}

// Version is part of node.Allotments.
func (f *rightsLoop) Version() uint64 { return f.version.Load() }

// Allotment is part of node.Allotments.
func (f *rightsLoop) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop.Agent == nil {
		return 0, f.why
	}
	return f.loop.Agent.Allotment(rule, total, x, carry, regional)
}

// Former is part of node.Allotments.
func (f *rightsLoop) Former(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop.Agent == nil {
		return 0, f.why
	}
	return f.loop.Agent.Former(rule, total, x, carry, regional)
}

// RegionAllotment is part of node.Allotments.
func (f *rightsLoop) RegionAllotment(rule, total uint64, x, carry int64) (uint64, epoch.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop.Agent == nil {
		return 0, f.why
	}
	return f.loop.Agent.RegionAllotment(rule, total, x, carry)
}

// PartOf is part of node.Allotments.
func (f *rightsLoop) PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64 {
	return read(f, func(a *agent.Agent) uint64 { return a.PartOf(peer, rule, total, x, carry, regional) })
}

// RegionPart is part of node.Allotments.
func (f *rightsLoop) RegionPart(region string, rule, total uint64, x, carry int64) uint64 {
	return read(f, func(a *agent.Agent) uint64 { return a.RegionPart(region, rule, total, x, carry) })
}

// RegionMost is part of node.Allotments.
func (f *rightsLoop) RegionMost(region string, rule, total uint64, x, carry int64) uint64 {
	return read(f, func(a *agent.Agent) uint64 { return a.RegionMost(region, rule, total, x, carry) })
}

var (
	_ node.Allotments = (*rightsLoop)(nil)
	_ replica.Rights  = (*rightsLoop)(nil)
)
