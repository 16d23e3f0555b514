package sim

import (
	"cmp"
	"fmt"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/wire"
)

// Allotments is how daemons share out rights, see agent.Config. A field of 0 is the
// default there, and a DaemonHorizon below 0 is none.
type Rights struct {
	Period, DaemonHorizon time.Duration
	Interval, WANInterval time.Duration
	Ahead                 time.Duration
	// Weights are the regions' shares at the start, in the order of
	// Config.Regions; empty is equal ones.
	Weights []uint64
}

// bureau is a process's part in the epochs, with a clock for its stamps.
type bureau struct {
	agent *agent.Agent
	clock *hlc.Clock
	told  time.Duration // when it was told of demand last, monotonic
}

// cluster is the fingerprint of the cluster in what is stored.
const cluster = 0x51eed

// tellDemand is how often offices are told what was asked for.
const tellDemand = time.Second

// agentOf is the configuration of a daemon's office.
func (c *Config) agentOf(region int, name string) agent.Config {
	r := &c.Rights
	out := agent.Config{
		Region: c.Regions[region].Name, Name: name, Period: r.Period,
		DaemonHorizon: max(0, cmp.Or(r.DaemonHorizon, agent.DefaultDaemonHorizon)),
		Interval:      r.Interval, WANInterval: r.WANInterval, Ahead: r.Ahead,
	}
	for i, region := range c.Regions {
		weight := uint64(0) // as much as all others
		if i < len(r.Weights) && c.Policy != Static {
			weight = r.Weights[i]
		}
		out.Regions = append(out.Regions, agent.Region{Name: region.Name, Weight: weight})
	}
	for i := range c.Regions[region].Daemons {
		out.Daemons = append(out.Daemons, daemonName(c.Regions[region].Name, i))
	}
	return out
}

// validateRights returns what is wrong with how rights are shared out.
func (c *Config) validateRights() error {
	if !c.Policy.hasRights() || !c.anyRights() {
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

// open returns the office of a process that starts.
func (w *World) open(d *Daemon) (*bureau, error) {
	c := w.cfg.agentOf(d.RegionIndex, d.Name)
	start := agent.Start{First: true}
	switch {
	case d.disk.data != nil:
		record, err := wire.DecodeStored(d.disk.data, cluster, d.Name)
		if err != nil {
			return nil, fmt.Errorf("sim: the disk of %s: %w", d.Name, err)
		}
		start = agent.Start{Record: record}
	case d.ran == d.Name && !w.cfg.mutation.forgetful:
		// The operator knows to the label what it may have used.
		start = agent.Start{Generation: uint64(d.starts) + 1, Fence: max(1, d.usedWindow)}
	}
	agent, err := agent.New(c, start)
	if err != nil {
		return nil, fmt.Errorf("sim: %s: %w", d.Name, err)
	}
	d.ran = d.Name
	b := &bureau{agent: agent, clock: hlc.NewClock(w.cfg.Node.Clock)}
	b.clock.HoldJumps(true)
	return b, nil
}

// takeAgent gives a process that starts its part in the epochs, nil for none.
func (w *World) takeAgent(d *Daemon) (node.Allotments, error) {
	d.bureau = nil
	if !w.rights {
		return nil, nil
	}
	b, err := w.open(d)
	if err != nil {
		return nil, err
	}
	d.bureau = b
	held := node.Allotments(b.agent)
	if w.cfg.mutation.rights != nil {
		held = w.cfg.mutation.rights(w, d, held)
	}
	return &witness{w, d, int32(len(w.members)), held}, nil
}

// inform tells an office the rules in force that have agent.
func (w *World) inform(d *Daemon) {
	if d.bureau == nil {
		return
	}
	var list []agent.Rule
	for _, r := range w.sets[d.set].set.Rules() {
		if r.Limit == nil || !r.Limit.HasRights() {
			continue
		}
		rule := rightsRule(r)
		if !w.cfg.Policy.rebalances() {
			rule.Pins = nil
		}
		if w.cfg.mutation.hasty {
			rule.Window = 0
		}
		list = append(list, rule)
	}
	d.bureau.agent.Rules(list)
}

// rightsRule is a rule as offices know it.
func rightsRule(r *rules.Rule) agent.Rule {
	_, carry := quota.Of(r.Limit).RightsWindow(0)
	out := agent.Rule{
		ID:       node.SharedRule(r),
		Lookback: time.Duration(r.Limit.Window()+carry)*time.Millisecond + 10*time.Second,
		Window:   time.Duration(r.Limit.Window()) * time.Millisecond,
	}
	for _, p := range r.Limit.Weights {
		out.Pins = append(out.Pins, agent.Pin{Region: p.Region, Share: uint32(p.Share)})
	}
	return out
}

// introduce tells an office who is there.
func (w *World) introduce(d *Daemon, list []gossip.Peer) {
	if d.bureau == nil {
		return
	}
	d.bureau.agent.Peers(d.Instant(w.now).Mono, d.incarnations[0], list)
	w.perform(d)
}

// attend lets an office that is due do what time calls for.
func (w *World) attend(d *Daemon) {
	b, at := d.bureau, d.Instant(w.now)
	if at.Mono-b.told >= tellDemand && w.cfg.Policy.rebalances() {
		b.told = at.Mono
		w.tellDemand(d)
	}
	b.agent.Tick(at.Mono, b.clock.Now(at))
	d.wakes[len(d.Nodes)] = never
	w.perform(d)
}

// tellDemand tells an office what its daemon was asked for.
func (w *World) tellDemand(d *Daemon) {
	set := w.sets[d.set].set.Rules()
	offered := make([]uint64, len(set))
	for _, n := range d.Nodes {
		n.Tallies(func(r *rules.Rule, t quota.Tally) {
			if r != nil && r.Index < len(set) {
				offered[r.Index] += t.Offered
			}
		})
	}
	for i, r := range set {
		if r.Limit != nil && r.Limit.HasRights() {
			d.bureau.agent.Demand(node.SharedRule(r), offered[i])
		}
	}
}

// perform does what an office wants done.
func (w *World) perform(d *Daemon) {
	r := d.bureau.agent.Ready(d.Instant(w.now).Mono)
	if r.Store != nil {
		w.save(d, r.Store)
	}
	for i := range r.Events {
		e := &r.Events[i]
		w.agents[e.Kind]++
		w.trace.word(uint64(d.Index)<<32 | uint64(e.Kind))
		w.trace.maybeFlush()
	}
	for i := range r.Messages {
		w.postRights(d, &r.Messages[i])
	}
	// A later word does not put off the tick that an earlier one asked for.
	due := &d.wakes[len(d.Nodes)]
	*due = min(*due, r.Wake)
	w.sleep(d)
}

// postRights sends a message of an office.
func (w *World) postRights(d *Daemon, m *agent.Message) {
	to, known := w.addressOf[m.To]
	if !known {
		return // as those of nodes
	}
	frame, err := wire.EncodeRights(w.buffer(), m)
	if err != nil || len(frame) > wire.MaxFrameBytes {
		w.traffic.Unsendable++
		return
	}
	if is := &w.members[to]; is.daemon != d.Index {
		w.traffic.Rights++
		w.traffic.RightsBytes += uint64(len(frame))
		w.send(d.Index, is.daemon, is.name, frame)
	}
}

// receiveRights hands a frame to the office of a daemon that runs.
func (w *World) receiveRights(d *Daemon, f flight) {
	m, err := wire.DecodeRights(f.frame)
	w.drop(f)
	switch {
	case f.mangled:
		w.mangled(err)
		return
	case err != nil:
		w.traffic.Unreadable++
		return
	case d.bureau == nil:
		return
	}
	b, at := d.bureau, d.Instant(w.now)
	_ = b.clock.Observe(at, m.Stamp) // a clock that is off is not followed
	// What is wrong with a message is an event of the office.
	_ = b.agent.Receive(at.Mono, b.clock.Millis(at), m)
	w.perform(d)
}

// observe lets a daemon's own clock follow what its nodes hear.
func (d *Daemon) observe(now time.Duration, stamp hlc.Timestamp) {
	if d.bureau != nil {
		_ = d.bureau.clock.Observe(d.Instant(now), stamp) // as in receiveRights
	}
}
