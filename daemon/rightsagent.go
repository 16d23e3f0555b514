package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
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

	lock    io.Closer // locks the folder while the process runs
	version atomic.Uint64
	news    chan struct{} // holds a token when a turn is due

	mu   sync.Mutex
	loop replica.RightsLoop
}

// openAgent opens the rights agent of a daemon, none for one that holds no
// rights.
func (d *daemon) openAgent() error {
	c := &d.Config
	if c.Region == "" || c.State.Dir == "" {
		return nil
	}
	// Two processes that went on from one record would use every right twice.
	storage := d.storage("rights of a cluster")
	lock, err := storage.Folder.Lock("lock")
	if err != nil {
		return fmt.Errorf("state.dir: %w", err)
	}
	d.agent = &rightsLoop{log: d.Log, storage: storage, news: make(chan struct{}, 1), lock: lock}
	d.agent.loop.Agent, err = d.newAgent()
	return err
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
	if d.agent != nil {
		d.agent.lock.Close()
	}
}

// newAgent returns the agent as its record has it.
func (d *daemon) newAgent() (*agent.Agent, error) {
	c := &d.Config
	start, found, err := d.agent.storage.OpenRights()
	if err != nil {
		return nil, fmt.Errorf("state.dir: %w", err)
	}
	if found.Found == replica.Missing {
		d.Log.Warn("the record of this daemon's rights is missing, and rights.first_start is not set: "+
			"it holds no rights before the other daemons have admitted it", "file", found.File)
	}
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
	return agent.New(rc, start)
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
	f.do(func(a *agent.Agent) { err = a.Receive(at.Mono, now, m) })
	return err
}

// peers sets the daemons that are live.
func (f *rightsLoop) peers(at node.Instant, self crdt.Incarnation, peers []gossip.Peer) {
	f.do(func(a *agent.Agent) { a.Peers(at.Mono, self, peers) })
}

// rules sets the rules in force.
func (f *rightsLoop) rules(set *rules.Set) {
	f.do(func(a *agent.Agent) { a.Rules(replica.RightsRules(set)) })
}

// Left is part of replica.Resigner.
func (f *rightsLoop) Left() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop.Agent.Left()
}

// Resign is part of replica.Resigner.
func (f *rightsLoop) Resign() { f.do((*agent.Agent).Resign) }

// Resigned is part of replica.Resigner.
func (f *rightsLoop) Resigned() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loop.Agent.Resigned()
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
	_ node.Allotments  = (*rightsLoop)(nil)
	_ replica.Resigner = (*rightsLoop)(nil)
)
