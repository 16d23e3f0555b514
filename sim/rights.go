package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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

// participant returns a region or a daemon as a participant of epochs.
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
	if err = errors.Join(err, found.Fault); err != nil {
		return nil, fmt.Errorf("sim: the disk of %s: %w", d.Name, err)
	}
	w.opened(d, found.File, nil)
	cfg := w.cfg.agentOf(d.RegionIndex, d.Name)
	start := agent.Start{Record: record}
	switch {
	case record != nil:
		cfg.Self = record.Local.Owner
	case d.storage.First:
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
	d.agent = &replica.RightsLoop{Agent: a}
	return &tappedAllotments{w.steps.allotments(d, a), w, d, len(w.membership.all)}, nil
}

// agentRules sets the rules in force at a rights agent.
func (d *Daemon) agentRules(w *World) {
	if d.agent == nil {
		return
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
	if d.agent != nil {
		d.agent.Agent.Peers(d.Instant(w.now).Mono, d.incarnations[0], list)
		d.turnAgent(w)
	}
}

// turnAgent does the work of a rights agent that is due.
func (d *Daemon) turnAgent(w *World) {
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
	d.serveAgent(w, d.agent.Turn(at.Mono, d.time(w.now)))
}

// serveAgent carries out the work that a rights agent returned.
func (d *Daemon) serveAgent(w *World, r agent.Ready) {
	if r.Store != nil {
		w.steps.writeRecord(d, r.Store)
	}
	if r.Proposal != nil {
		d.agent.Agent.Regions(w.cfg.agentOf(d.RegionIndex, d.Name).Genesis, []epochs.Epoch{*r.Proposal})
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
		w.network.send(w, d.Index, is.daemon, is.name, frame)
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
	return m.Expedited && (len(m.RightsMessages) > 0 ||
		slices.ContainsFunc(m.Cells, func(c gossip.Cell) bool { return c.Kind == gossip.Given }))
}

// tappedAllotments answers as a daemon's rights agent does, out of the total
// that the policy gives out, and reports the answers to the auditors.
type tappedAllotments struct {
	node.Allotments
	world   *World
	daemon  *Daemon
	process int // in World.members
}

// Allotment implements node.Allotments.
func (t *tappedAllotments) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
	total = t.world.portion(rule, total)
	amount, why := t.Allotments.Allotment(rule, total, x, carry, regional)
	t.allotted(rule, total, x, regional, amount)
	return amount, why
}

// Former implements node.Allotments.
func (t *tappedAllotments) Former(rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
	total = t.world.portion(rule, total)
	amount, why := t.Allotments.Former(rule, total, x, carry, regional)
	t.allotted(rule, total, x, regional, amount)
	return amount, why
}

// allotted reports an allotment to the auditors.
func (t *tappedAllotments) allotted(rule, total uint64, x int64, regional bool, amount uint64) {
	region := -1
	if regional {
		region = t.daemon.RegionIndex
	}
	t.world.auditors.allotted(&Allotted{
		Daemon: t.daemon, Process: t.process, Rule: rule, Window: x, Region: region, Total: total, Amount: amount,
	})
}

// PartOf implements node.Allotments.
func (t *tappedAllotments) PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64 {
	return t.Allotments.PartOf(peer, rule, t.world.portion(rule, total), x, carry, regional)
}

// RegionPart implements node.Allotments.
func (t *tappedAllotments) RegionPart(region string, rule, total uint64, x, carry int64) uint64 {
	return t.Allotments.RegionPart(region, rule, t.world.portion(rule, total), x, carry)
}

// RegionAllotment implements node.Allotments.
func (t *tappedAllotments) RegionAllotment(rule, total uint64, x, carry int64) (uint64, epochs.Reason) {
	total = t.world.portion(rule, total)
	amount, why := t.Allotments.RegionAllotment(rule, total, x, carry)
	t.world.auditors.allotted(&Allotted{
		Daemon: t.daemon, Process: t.process, Rule: rule, Window: x, Region: t.daemon.RegionIndex,
		ByRegion: true, Total: total, Amount: amount,
	})
	return amount, why
}

// portion returns the part of a total that the policy of the run gives out.
func (w *World) portion(rule, total uint64) uint64 {
	if !w.cfg.Policy.Plain() {
		return total
	}
	for i := w.newest(); i >= 0; i-- {
		if r := w.sets[i].set.FindShared(rule); r != nil {
			return w.cfg.Policy.portion(total, r.Limit)
		}
	}
	return total
}
