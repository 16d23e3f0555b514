package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/disk/simdisk"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	epochs "github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/wire"
)

// Rights is how daemons share out rights, see agent.Config. A field of 0 is the
// default there, and a DaemonHorizon of 0 is none.
type Rights struct {
	Period, DaemonHorizon time.Duration
	Interval, WANInterval time.Duration
	Ahead                 time.Duration
	// Weights are the regions' shares at the start, in the order of
	// Config.Regions; empty is equal ones.
	Weights []uint64
}

// cluster is the fingerprint of the cluster in stored records.
const cluster = 0x51eed

// agentOf returns the configuration of a daemon's rights agent.
func (c *Config) agentOf(region int, name string) agent.Config {
	r := &c.Rights
	out := agent.Config{
		Region: c.Regions[region].Name, Name: name, Period: r.Period,
		DaemonHorizon: r.DaemonHorizon, Interval: r.Interval, WANInterval: r.WANInterval, Ahead: r.Ahead,
	}
	out.Self, out.Generation, out.Cluster = participant("daemon", name), participant("region", out.Region), cluster
	out.Horizon = max(r.DaemonHorizon, 0).Milliseconds()
	for i, region := range c.Regions {
		weight := uint64(0) // as much as all others
		if i < len(r.Weights) && c.Policy != Static {
			weight = r.Weights[i]
		}
		out.Genesis = append(out.Genesis, agent.Region{Name: region.Name, ID: participant("region", region.Name), Weight: weight})
	}
	for i := range c.Regions[region].Daemons {
		out.Founders = append(out.Founders, participant("daemon", daemonName(c.Regions[region].Name, i)))
	}
	return out
}

// participant returns a region or a daemon as a participant of epochs, in runs
// without a control log.
func participant(kind, name string) uint64 { return rendezvous.Hash(kind, name) | 1 }

// validateRights returns an error for a bad configuration of rights.
func (c *Config) validateRights() error {
	if !c.Policy.HasRights() || !c.HasRights() {
		return nil
	}
	if n := len(c.Rights.Weights); n != 0 && n != len(c.Regions) {
		return fmt.Errorf("sim: weights of %d regions: want %d", n, len(c.Regions))
	}
	for i, r := range c.Regions {
		if err := c.agentOf(i, daemonName(r.Name, 0)).Validate(); err != nil {
			return fmt.Errorf("sim: rights: %w", err)
		}
	}
	return nil
}

// openAgent recovers the rights agent of a process that starts. It returns the
// shares that its nodes see, nil where no rule has rights.
func (d *Daemon) openAgent(w *World) (node.Allotments, error) {
	if !w.rights {
		return nil, nil
	}
	record, found, err := d.storage.OpenRights()
	if err = errors.Join(err, found.Fault); err == nil && w.cfg.Control == nil {
		err = found.Damage // there is no log that would give it another id
	}
	if err != nil {
		return nil, fmt.Errorf("sim: the disk of %s: %w", d.Name, err)
	}
	w.opened(d, found.File, found.Damage)
	takeAccounts(d, w)
	if w.cfg.Control != nil {
		d.follows = follower{was: d.follows.was, ended: d.follows.ended}
		return &tappedAllotments{w.steps.allotments(d, &recordAllotments{d: d}), w, d}, nil
	}
	cfg := w.cfg.agentOf(d.RegionIndex, d.Name)
	start := agent.Start{Record: record}
	switch {
	case record != nil:
		cfg.Self = record.Local.Owner
		start.Accounts = resumes(d, record)
	case d.first:
		start.Found = slices.Contains(cfg.Founders, cfg.Self)
	default: // another participant
		d.unrecorded++
		cfg.Self = rendezvous.Mix(cfg.Self+uint64(d.storage.Fence)) | 1
	}
	a, err := agent.New(cfg, start)
	if err != nil {
		return nil, fmt.Errorf("sim: %s: %w", d.Name, err)
	}
	a.Confirm()
	d.resumed = start.Accounts
	d.agent = &replica.RightsLoop{Agent: a}
	return &tappedAllotments{w.steps.allotments(d, a), w, d}, nil
}

// agentRules sets the rules in force at a rights agent.
func (d *Daemon) agentRules(w *World) {
	if d.agent == nil {
		return // it gets them when it is made
	}
	list := replica.RightsRules(w.sets[d.Set].set)
	for i := range list {
		if !w.cfg.Policy.rebalances() {
			list[i].Pins = nil
		}
	}
	d.agent.Agent.Rules(w.steps.agentRules(list))
}

// agentPeers sets the live daemons, as a process knows them.
func (d *Daemon) agentPeers(w *World, list []gossip.Peer) {
	d.follows.live = list
	if d.agent != nil {
		d.agent.Agent.Peers(d.Instant(w.now).Mono, d.incarnations[0], list)
		d.turnAgent(w)
	}
}

// follower is how a rights agent follows the record of the control log.
type follower struct {
	of        holder
	version   control.Version // of the record that the agent has
	confirmed bool
	stored    *agent.Agent // whose record waits for the statement that it is on disk
	number    uint64       // of that record
	proposal  control.Number
	recorded  epochs.ID // in a run without a control log
	live      []gossip.Peer
	was       holder // of the process before
	ended     uint64 // versions of former agents
}

// holder is the id of a daemon, and the generation of its region.
type holder struct {
	self       control.ID
	generation control.Version
}

// followRecord makes the agent that the record wants, and gives it what is new.
func followRecord(d *Daemon, w *World) {
	r := d.control.Record()
	if !w.rights || r == nil {
		return
	}
	f, g := &d.follows, r.Region(d.Region)
	if g == nil {
		endAgent(d)
		return
	}
	if of := (holder{d.control.ID(), g.Generation}); f.of != of {
		endAgent(d)
		if d.writing[rightsFile] != nil || !beginAgent(d, w, r, g, of) {
			return
		}
	}
	changed := f.version != r.Version
	if changed {
		f.version = r.Version
		regions := make([]agent.Region, len(r.Regions))
		for i := range r.Regions {
			regions[i] = agent.Region{Name: r.Regions[i].Name, ID: r.Regions[i].ID()}
		}
		dead := make([]epochs.Retirement, len(r.Dead))
		for i := range r.Dead {
			dead[i] = epochs.Retirement{ID: r.Dead[i].ID.Member(), From: r.Dead[i].From}
		}
		d.agent.Agent.Dead(dead)
		d.agent.Agent.Regions(regions, r.Epochs)
	}
	if !f.confirmed && !d.control.Starting() {
		f.confirmed, changed = true, true
		d.agent.Agent.Confirm()
		if d.resumed {
			for _, n := range d.Nodes {
				n.Resume()
			}
		}
	}
	if o := r.Outcome(f.proposal); o != nil && f.proposal != 0 {
		f.proposal, changed = 0, true
		var err error
		if o.Refused != "" {
			err = errors.New(o.Refused)
		}
		d.agent.Agent.ProposalDone(err)
	}
	if f.stored != nil && holdsRights(d, f.number) {
		f.stored = nil
		d.serveAgent(w, d.agent.Stored(d.Instant(w.now).Mono, nil))
	}
	if changed {
		d.turnAgent(w)
	}
}

// diskless reports whether a daemon has no state folder: nothing of a process
// outlives it.
func (c *Config) diskless(d *Daemon) bool {
	return c.Control != nil && len(c.Diskless) > 0 && d.in(c.Diskless)
}

// forgets reports whether a daemon has no disk, and those of its region with
// one take over the rights of its former processes.
func forgets(d *Daemon, w *World) bool { return d.storage.Diskless && w.cfg.Rights.DaemonHorizon > 0 }

// onlyForgets reports whether places are such daemons alone.
func (w *World) onlyForgets(places []string) bool {
	return len(places) > 0 && !slices.ContainsFunc(w.daemons, func(d *Daemon) bool { return d.in(places) && !forgets(d, w) })
}

// endAgent drops the agent: its id or its generation ended.
func endAgent(d *Daemon) {
	f := &d.follows
	if d.agent != nil {
		f.ended += d.agent.Agent.Version() + 1
	}
	d.agent = nil
	*f = follower{live: f.live, was: f.was, ended: f.ended}
}

// beginAgent makes the agent of a daemon in a generation of its region. It
// removes the record of another participant, a damaged and a former one. A
// daemon that held rights, and whose record is lost, gets a new id.
func beginAgent(d *Daemon, w *World, r *control.Record, g *control.Region, of holder) bool {
	cfg := w.cfg.agentOf(d.RegionIndex, d.Name)
	cfg.Self, cfg.Generation, cfg.Cluster = of.self.Member(), g.ID(), uint64(r.Cluster.ID)
	cfg.Horizon, cfg.From, cfg.Diskless = g.Horizon, g.From, d.storage.Diskless
	cfg.Founders, cfg.Genesis = nil, nil
	for _, id := range g.Founders {
		cfg.Founders = append(cfg.Founders, id.Member())
	}
	for _, first := range r.Genesis {
		id := control.RegionID(first.Name, r.FirstGeneration())
		cfg.Genesis = append(cfg.Genesis, agent.Region{Name: first.Name, ID: id, Weight: uint64(first.Weight)})
	}
	record, found, err := d.storage.OpenRights()
	if err = errors.Join(err, found.Fault); err != nil {
		if d.damaged {
			d.disk.Remove(replica.RightsFile)
		}
		return false // it tries again
	}
	start := agent.Start{Record: record}
	holds := control.RightsOf(d.control).Holds()
	former := record != nil && holds.Generation == g.Generation && record.Number < holds.Number
	if found.Damage != nil || former || record != nil && (record.Local.Owner != cfg.Self || record.Region.Owner != cfg.Generation) {
		d.disk.Remove(replica.RightsFile)
		start.Record = nil
	}
	if start.Record == nil {
		if holds.Generation == g.Generation {
			control.RightsOf(d.control).Renew("its record of rights is lost")
			d.wakes[len(d.Nodes)+controlWake] = 0
			w.sleep(d)
			return false
		}
		start.Found = slices.Contains(g.Founders, of.self)
	} else {
		start.Accounts = resumes(d, record)
	}
	d.resumed = start.Accounts
	a, err := agent.New(cfg, start)
	if err != nil {
		w.fail(fmt.Errorf("sim: %s: %w", d.Name, err))
		return false
	}
	f := &d.follows
	if f.was.generation == of.generation && f.was != of && r.DeadID(f.was.self) == nil && !forgets(d, w) {
		d.unrecorded++
		d.forgotten = append(d.forgotten, f.was.self)
	}
	f.of, f.was = of, of
	d.agent = &replica.RightsLoop{Agent: a}
	d.agentRules(w)
	a.Peers(d.Instant(w.now).Mono, d.incarnations[0], f.live)
	return true
}

// takeAccounts takes the accounts that the process before left. It begins a
// chain of its own.
func takeAccounts(d *Daemon, w *World) {
	left, err := d.storage.TakeAccounts()
	if err != nil {
		w.storage.check(d.damaged || d.disk.Faults != (simdisk.Faults{}), "at %v: %s: %v", w.now, d.Name, err)
	}
	d.left, d.resumed, d.chain = left, false, uint64(len(w.membership.all))
}

// resumes reports whether the agent that begins with a record goes on with the
// accounts of the process that stored it. Both are in one chain then.
func resumes(d *Daemon, record *agent.Stored) bool {
	left := d.left
	if left == nil || !left.Of(record) {
		return false
	}
	left.Self, d.chain = 0, left.Hash // once
	return true
}

// handOn stores the accounts of a process that ends for the next one, unless
// the machine crashes meanwhile. The hash of the keys, which is the same
// everywhere, gives way to the chain.
func handOn(d *Daemon, w *World) {
	if d.agent == nil || !d.agent.Agent.Stopped() {
		return
	}
	record, _, err := d.storage.OpenRights()
	if err != nil || record == nil || !record.Stopped() {
		return
	}
	left := &replica.Leftover{Self: record.Local.Owner, Generation: record.Region.Owner, Until: record.Until(), Hash: d.chain}
	for _, n := range d.Nodes {
		if !n.HandOn(d.Instant(w.now), &left.Accounts) {
			return
		}
	}
	w.steps.handOn(left)
	if w.faults.rng.IntN(4) == 0 {
		d.mount.EndAfter(w.faults.rng.IntN(maxTorn))
	}
	err = d.storage.StoreAccounts(left)
	if w.traced(d) {
		w.lines.add(d, "accounts", "chain=%d keys=%d error=%v", d.chain, len(left.Accounts.Keys), err)
	}
}

// holdsRights states that the daemon has a record of rights, and reports
// whether that is on disk.
func holdsRights(d *Daemon, number uint64) bool {
	f := &d.follows
	return d.control == nil || d.control.ID() == f.of.self && control.RightsOf(d.control).Hold(control.Holding{Generation: f.of.generation, Number: number})
}

// turnAgent does the work of a rights agent that is due.
func (d *Daemon) turnAgent(w *World) {
	if d.agent == nil {
		d.wakes[len(d.Nodes)+agentWake] = never
		return
	}
	w.auditors.stepped(d, nil, nil) // it reads the clocks
	at := d.Instant(w.now)
	if d.agent.CountDue(at.Mono) && w.cfg.Policy.rebalances() {
		demand := map[uint64]uint64{}
		for _, n := range d.Nodes {
			n.Offered(func(rule, hits uint64) { demand[rule] += hits })
		}
		for _, rule := range slices.Sorted(maps.Keys(demand)) {
			d.agent.Agent.Demand(rule, demand[rule])
		}
	}
	d.serveAgent(w, d.agent.Turn(at.Mono, d.time(w.now), node.ClockContradicted(d.Nodes[0])))
	if d.control != nil {
		control.RightsOf(d.control).Settled(d.agent.Agent.Settled())
	} else if e := agent.Newest(d.agent.Agent); e.ID != d.follows.recorded {
		recordEpoch(d, w, e)
	}
}

// recordEpoch has the agent of a run without a control log take an epoch for
// the newest one of the record.
func recordEpoch(d *Daemon, w *World, e epochs.Epoch) {
	d.follows.recorded = e.ID
	d.agent.Agent.Regions(w.cfg.agentOf(d.RegionIndex, d.Name).Genesis, []epochs.Epoch{e})
}

// serveAgent carries out the work that a rights agent returned.
func (d *Daemon) serveAgent(w *World, r agent.Ready) {
	if r.Store != nil && !d.storage.Diskless {
		w.steps.writeRecord(d, r.Store)
	}
	if r.Proposal != nil && d.control != nil {
		proposeRights(d, w, r.Proposal)
	} else if r.Proposal != nil {
		recordEpoch(d, w, *r.Proposal)
	}
	for i := range r.Events {
		w.agents[r.Events[i].Kind]++
		d.sawKind(w, ofRights, r.Events[i].Kind)
		w.trace.word(uint64(d.Index)<<32 | uint64(r.Events[i].Kind))
		if e := &r.Events[i]; w.traced(d) {
			w.lines.add(d, "event", "rights %v peer=%s %s", e.Kind, e.Peer, e.Text)
		}
	}
	for i := range r.Messages {
		d.postRights(w, &r.Messages[i])
	}
	d.wakes[len(d.Nodes)+agentWake] = r.Wake
	w.sleep(d)
	if r.Store != nil && d.storage.Diskless { // which is done at once
		w.steps.writeRecord(d, r.Store)
	}
}

// proposeRights hands an epoch of regions to the control log.
func proposeRights(d *Daemon, w *World, e *epochs.Epoch) {
	f := &d.follows
	if f.proposal != 0 {
		d.control.Forget(f.proposal)
	}
	var err error
	f.proposal, err = d.control.Submit(control.Request{Author: control.Rebalancer, Change: control.Change{Epoch: e}})
	if err != nil {
		f.proposal = 0
		d.agent.Agent.ProposalDone(err)
	}
	d.wakes[len(d.Nodes)+controlWake] = 0 // soon
}

// postRights sends a message of a rights agent.
func (d *Daemon) postRights(w *World, m *agent.Message) {
	to, known := w.membership.byAddress[m.To]
	if !known {
		return // as in post
	}
	frame, err := wire.EncodeRights(w.network.buffer(), m)
	if err != nil || len(frame) > wire.MaxFrameBytes {
		w.network.traffic.Unsendable++
		return
	}
	if is := &w.membership.all[to]; is.daemon != d.Index {
		d.sawRights(w, ofSent, m)
		w.network.traffic.Rights++
		w.network.traffic.RightsBytes += uint64(len(frame))
		w.network.send(w, d.Index, is, frame)
		if d.breaksProtocol(w) {
			d.sendBadRights(w, m, is)
		}
	}
}

// rightsResult sums up what became of rights, nil where no rule has any.
func (w *World) rightsResult() *RightsResult {
	if !w.cfg.HasRights() {
		return nil
	}
	sum := w.ended
	for _, d := range w.daemons {
		for _, n := range d.Nodes {
			sum.Add(n.Stats())
		}
	}
	r := &RightsResult{
		Policy: w.cfg.Policy.String(), Given: sum.Given, Received: sum.Received, Transfers: w.transfers,
		ByEstimate: sum.Refusals[node.EstimateGate], ByRights: sum.Refusals[node.RightsGate],
		ByBoth: sum.Refusals[node.BothGates], Epochs: w.agents[agent.Proposed],
	}
	if w.tallies.decisions > 0 {
		r.PerDecision = float64(r.Transfers) / float64(w.tallies.decisions)
	}
	return r
}

// transfers reports whether a message is sent because of a transfer.
func transfers(m *gossip.Message) bool {
	return len(m.RightsMessages) > 0 ||
		slices.ContainsFunc(m.Cells, func(c gossip.Cell) bool { return c.Kind == gossip.Given })
}
