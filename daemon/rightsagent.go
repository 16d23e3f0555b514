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

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/wire"
)

// rightsLoop runs a replica.RightsLoop with a file on disk, and answers the
// shards. It is safe for concurrent use. Shards call it while they are locked,
// so it never locks one while it is locked, and it is not locked while it
// writes.
type rightsLoop struct {
	log     *slog.Logger
	storage replica.Storage
	// open opens the record. fault is why the disk cannot be used now.
	open func() (a *agent.Agent, fault, err error)

	lock    io.Closer // locks the folder while the process runs, nil while the disk fails
	version atomic.Uint64
	news    chan struct{} // holds a token when a turn is due

	mu   sync.Mutex
	loop replica.RightsLoop
	// Without a record the agent holds no rights, and exchanges nothing.
	unread bool
	retry  time.Duration // when to open it again
	set    *rules.Set
	self   crdt.Incarnation
	live   []gossip.Peer
}

// openAgent opens the rights agent of a daemon, none for one that holds no
// rights.
func (d *daemon) openAgent() error {
	c := &d.Config
	if c.Region == "" || c.State.Dir == "" {
		return nil
	}
	f := &rightsLoop{log: d.Log, open: d.openRecord, news: make(chan struct{}, 1)}
	d.agent = f
	a, fault, err := d.openRecord()
	if err == nil && fault != nil {
		f.unread = true
		d.Log.Error("the record of rights cannot be read: this daemon holds no rights, and tries again every "+
			replica.RetryAfter.String()+"; repair the disk", "event", "rights_failed", "error", fault)
		a, err = agent.New(d.agentConfig(), agent.Start{Generation: 1, Fence: math.MaxInt64 / 2})
	}
	f.loop.Agent = a
	return err
}

// openRecord locks the folder and opens the agent as its record has it.
func (d *daemon) openRecord() (a *agent.Agent, fault, err error) {
	f := d.agent
	f.storage = d.storage("rights of a cluster")
	if f.lock == nil {
		// Two processes that went on from one record would use every right
		// twice.
		switch f.lock, err = f.storage.Folder.Lock("lock"); {
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EIO):
			return nil, err, nil
		case err != nil: // another process uses the folder, or it cannot be one
			return nil, nil, fmt.Errorf("state.dir: %w", err)
		}
	}
	return d.newAgent()
}

// closeState closes the files of the control log, the acceptor and the rights
// agent.
func (d *daemon) closeState() {
	if d.control != nil {
		d.control.close()
	}
	if d.strict != nil {
		d.strict.acceptor.close()
	}
	if d.agent != nil && d.agent.lock != nil {
		d.agent.lock.Close()
	}
}

// newAgent returns the agent as its record has it, or the fault of the disk.
func (d *daemon) newAgent() (a *agent.Agent, fault, err error) {
	start, found, err := d.agent.storage.OpenRights()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("state.dir: %w", err)
	case found.Fault != nil:
		return nil, found.Fault, nil
	}
	if found.Found == replica.Missing {
		d.Log.Warn("the record of this daemon's rights is missing, and rights.first_start is not set: "+
			"it holds no rights before the other daemons have admitted it", "file", found.File)
	}
	a, err = agent.New(d.agentConfig(), start)
	return a, nil, err
}

// agentConfig configures the agent.
func (d *daemon) agentConfig() agent.Config {
	c := &d.Config
	rc := agent.Config{
		Region: c.Region, Name: c.Name, Daemons: c.Rights.Daemons,
		DaemonHorizon: c.Rights.DaemonHorizon, Period: c.Rights.Period,
	}
	if rc.DaemonHorizon == 0 {
		rc.DaemonHorizon = -1
	}
	for _, name := range c.RegionNames() {
		r := agent.Region{Name: name}
		for _, known := range c.Regions {
			if known.Name == name {
				r.Weight, r.Added = uint64(known.Weight), known.Added
			}
		}
		rc.Regions = append(rc.Regions, r)
	}
	return rc
}

// reopen opens a record again that could not be read, when that is due. It
// returns when to try again, 0 for never: the record is open.
func (f *rightsLoop) reopen(at time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.unread || at < f.retry {
		return f.retry
	}
	first := f.retry == 0
	if f.retry = at + replica.RetryAfter; first {
		return f.retry
	}
	a, fault, err := f.open()
	if fault != nil || err != nil {
		return f.retry
	}
	f.log.Info("the record of rights is read", "event", "rights_reopened")
	f.unread, f.retry, f.loop.Agent = false, 0, a
	a.Rules(replica.RightsRules(f.set))
	a.Peers(at, f.self, f.live)
	return 0
}

// with runs do on the machine and publishes the version of the shares.
func (f *rightsLoop) with(do func(*replica.RightsLoop)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(&f.loop)
	f.version.Store(f.loop.Agent.Version())
}

// do runs by on the agent and makes the loop take a turn soon.
func (f *rightsLoop) do(by func(*agent.Agent)) {
	f.with(func(l *replica.RightsLoop) { by(l.Agent) })
	notify(f.news)
}

// run takes turns until ctx ends. send hands a frame to a peer's queue.
func (f *rightsLoop) run(ctx context.Context, e *Engine, send func(crdt.Incarnation, []byte) bool) {
	takeTurns(ctx, e, f.news, func() time.Duration { return f.turn(e.Now(), e, send) })
}

// turn does the work that is due, and returns when the next turn is.
func (f *rightsLoop) turn(at node.Instant, e *Engine, send func(crdt.Incarnation, []byte) bool) time.Duration {
	if again := f.reopen(at.Mono); again != 0 {
		return again
	}
	now := e.Time(at)
	due := false
	f.with(func(l *replica.RightsLoop) { due = l.CountDue(at.Mono) })
	var offered map[uint64]uint64
	if due {
		offered = e.Offered()
	}
	var ready agent.Ready
	f.with(func(l *replica.RightsLoop) {
		for rule, hits := range offered {
			l.Agent.Demand(rule, hits)
		}
		ready = l.Turn(at.Mono, now)
	})
	for f.post(&ready, send); ready.Store != nil; f.post(&ready, send) {
		err := f.storage.StoreRights(ready.Store)
		f.with(func(l *replica.RightsLoop) { ready = l.Stored(at.Mono, err) })
	}
	return ready.Wake
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
	for _, ev := range ready.Events {
		level := slog.LevelInfo
		switch ev.Kind {
		case agent.Refused, agent.StoreFailed, agent.PinsUnfit:
			level = slog.LevelWarn
		}
		logState(f.log, level, "rights: "+ev.Kind.String(), ev.Text, ev.Peer)
	}
}

// receive handles a message of a peer.
func (f *rightsLoop) receive(at node.Instant, now int64, m *agent.Message) error {
	var err error
	f.do(func(a *agent.Agent) {
		if !f.unread {
			err = a.Receive(at.Mono, now, m)
		}
	})
	return err
}

// peers sets the daemons that are live.
func (f *rightsLoop) peers(at node.Instant, self crdt.Incarnation, peers []gossip.Peer) {
	f.do(func(a *agent.Agent) {
		if f.self, f.live = self, peers; !f.unread {
			a.Peers(at.Mono, self, peers)
		}
	})
}

// rules sets the rules in force.
func (f *rightsLoop) rules(set *rules.Set) {
	f.do(func(a *agent.Agent) {
		f.set = set
		a.Rules(replica.RightsRules(set))
	})
}

// Left is part of replica.Rights.
func (f *rightsLoop) Left() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop.Agent.Left()
}

// Stop is part of replica.Rights.
func (f *rightsLoop) Stop() { f.do((*agent.Agent).Stop) }

// Stopped is part of replica.Rights.
func (f *rightsLoop) Stopped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop.Agent.Stopped()
}

// Status returns the state of the agent.
func (f *rightsLoop) Status() agent.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop.Agent.Status()
}

// Weights returns the weights of the regions for a rule.
func (f *rightsLoop) Weights(rule uint64) []agent.MemberStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop.Agent.Weights(rule)
}

// Version is part of node.Allotments.
func (f *rightsLoop) Version() uint64 { return f.version.Load() }

// Allotment is part of node.Allotments.
func (f *rightsLoop) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop.Agent.Allotment(rule, total, x, carry, regional)
}

// Former is part of node.Allotments.
func (f *rightsLoop) Former(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop.Agent.Former(rule, total, x, carry, regional)
}

// RegionAllotment is part of node.Allotments.
func (f *rightsLoop) RegionAllotment(rule, total uint64, x, carry int64) (uint64, epoch.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop.Agent.RegionAllotment(rule, total, x, carry)
}

// PartOf is part of node.Allotments.
func (f *rightsLoop) PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop.Agent.PartOf(peer, rule, total, x, carry, regional)
}

// RegionPart is part of node.Allotments.
func (f *rightsLoop) RegionPart(region string, rule, total uint64, x, carry int64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop.Agent.RegionPart(region, rule, total, x, carry)
}

var (
	_ node.Allotments = (*rightsLoop)(nil)
	_ replica.Rights  = (*rightsLoop)(nil)
)
