package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
)

// probe is the clients of one region in the liveness phase: they ask its
// daemons by turns for a key of one descriptor, until they are admitted.
type probe struct {
	domain  string
	entries []rules.Entry
	used    bool      // hits of the key count already
	daemons []*Daemon // of the region, none of which refuses another one
	tries   int
	due     time.Duration // of the next try
	asked   *Daemon       // whose answer they wait for, nil for none
	process int           // of that daemon
	done    bool
	why     string // the latest answer was no
}

// probeKeys are a key that is new and one that clients asked for.
var probeKeys = []string{"liveness", "key-0"}

const (
	// probeStep is how often clients of probes look whether a try is due.
	// Tries become seldom: each comes probeStep later than the one before, up
	// to probeMost.
	probeStep = 50 * time.Millisecond
	probeMost = 2 * time.Second
	// probeSource is the source number of probes.
	probeSource = -2
)

// recovery is the liveness phase: the promises that the core must keep again
// after its faults.
type recovery struct {
	world  *World
	probes []probe
	stuck  string // the check that does not pass in the end
}

// wait lets the cluster go on until it serves clients again, for at most
// Liveness.
func (r *recovery) wait(w *World) {
	r.world = w
	if w.cfg.Liveness == 0 || w.failed != nil || w.pending != "" {
		return
	}
	if !w.healed {
		w.heal()
	}
	r.probes = r.newProbes()
	step, end := max(probeStep, w.cfg.Liveness/settleSteps), w.now+w.cfg.Liveness
	for w.failed == nil {
		for i := range r.probes {
			r.try(i)
		}
		if r.stuck = r.unserved(); r.stuck == "" || w.now >= end {
			return
		}
		w.runUntil(min(end, w.now+step))
	}
}

// Stuck returns the first promise that the core did not keep within Liveness
// after the last fault, "" for none. served is the number of admitted probes.
func (w *World) Stuck() (reason string, served uint64) {
	for i := range w.recovery.probes {
		if w.recovery.probes[i].done {
			served++
		}
	}
	return w.recovery.stuck, served
}

// newProbes returns the probes of keys of all descriptors that clients ask for,
// in each region of the core, and of each set of its daemons that do not refuse
// each other.
func (r *recovery) newProbes() (all []probe) {
	w := r.world
	asked := slices.Concat(byShards(w.Core())...)
	for i := range w.cfg.Workloads {
		l := &w.cfg.Workloads[i]
		for n, key := range probeKeys {
			for _, d := range (&load.Workload{Descriptors: l.Descriptors}).Call(nil, key, 1) {
				// Values behind a prefix may share one limit, and a value
				// that is not drawn is no new key.
				fresh := slices.ContainsFunc(d.Entries, func(e rules.Entry) bool { return e.Value == key })
				prefixed := slices.ContainsFunc(d.Entries, func(e rules.Entry) bool { return e.Value != key && strings.HasSuffix(e.Value, key) })
				known := slices.ContainsFunc(all, func(p probe) bool { return p.domain == l.Domain && slices.Equal(p.entries, d.Entries) })
				for _, local := range asked {
					if !known {
						all = append(all, probe{domain: l.Domain, entries: d.Entries, used: n > 0 || !fresh || prefixed, daemons: local, due: w.now})
					}
				}
			}
		}
	}
	return all
}

// try makes the call of a probe that is due.
func (r *recovery) try(i int) {
	w, p := r.world, &r.probes[i]
	if p.asked != nil && (!p.asked.Up || p.asked.Process() != p.process) {
		p.asked = nil // nobody answers
	}
	if p.done || p.asked != nil || p.due > w.now {
		return
	}
	p.asked = p.daemons[p.tries%len(p.daemons)]
	p.tries++
	if p.process = p.asked.Process(); !p.asked.Up {
		p.asked = nil
		return
	}
	c := w.newCall()
	c.Domain, c.Peek, c.Refundable = p.domain, false, false
	c.Descriptors = append(c.Descriptors[:0], rules.Descriptor{Entries: p.entries, Hits: 1})
	w.fail(w.ask(p.asked, c, attempt{source: probeSource, key: i}))
}

// answered notes the answer to a probe.
func (r *recovery) answered(i int, c *node.Call) {
	p := &r.probes[i]
	p.done = true
	for i := range c.Statuses {
		if st := &c.Statuses[i]; st.Limit != nil && !r.served(p, st) {
			p.done = false
			p.used = p.used || !st.Over // by this probe, and it asks again
			p.why = fmt.Sprintf("%s denied %s, %v", p.asked.Name, RuleName(st.Rule), st.Degraded)
		}
	}
	p.asked, p.due = nil, r.world.now+min(time.Duration(p.tries)*probeStep, probeMost)
}

// served reports whether an answer is as good as a client may expect: admitted
// by the limit, unless nobody promises that.
func (r *recovery) served(p *probe, st *node.Status) bool {
	w, l := r.world, st.Limit
	admitted := !st.Over && st.Degraded == node.NotDegraded
	unreachable := st.Degraded == node.OwnerUnreachable || st.Degraded == node.CircuitOpen
	switch capacity := quota.Of(l).Capacity(); {
	case st.Degraded == node.KeysFull, st.Degraded == node.CellsFull:
		return true // there is no room for a new key
	case admitted, st.Rule == nil, l.Shadow, l.Unlimited, l.ChargeDenied, capacity < uint64(len(w.regions)), apart(w):
		return true
	case p.used && !unreachable && (l.CarryDebt || quota.Of(l).Drains() || 3*l.Window() > w.cfg.Liveness.Milliseconds()):
		return true // hits before may count for all of the phase
	case !l.Homed() && !(w.rights && l.HasRights()):
		return false
	case usedBefore(w, p.asked, l):
		return true
	case l.Homed() && hardlyLent(w, l):
		return true
	default: // rights and owners take messages
		return capacity < uint64(4*len(w.daemons)) || !r.intact(p, l)
	}
}

// usedBefore reports whether hits count that a former cluster may have admitted
// before it lost all its disks: this one has no rights and no owners for them.
func usedBefore(w *World, d *Daemon, l *rules.Limit) bool {
	if d.control == nil || d.control.Record() == nil {
		return false
	}
	back := 3 * l.Window()
	if f := quota.Of(l); f.Drains() {
		back = max(back, 2*f.RefillTime())
	}
	return d.Instant(w.now).Wall/int64(time.Millisecond)-back < d.control.Record().Cluster.From
}

// apart reports whether clocks of the core are further apart than max_offset.
func apart(w *World) bool {
	low, high := w.Clocks(w.Core())
	return time.Duration(high-low)*time.Millisecond > w.cfg.maxOffset()
}

// ownerWait is the longest that a call waits for an owner in another region,
// unless the margin is longer.
const ownerWait = time.Second

// hastyLoss is the share of lost messages above which callers that wait for
// less than the jitter keep breakers open.
const hastyLoss = 150_000 // in parts per million

// hasty reports whether few calls get an answer of an owner in another region
// in time. A daemon of the own region may forward them.
func hasty(c *Config) bool {
	region, across := &c.Network.Region, &c.Network.Across
	lost := max(region.Loss+region.Corrupt+region.Truncate, across.Loss+across.Corrupt+across.Truncate)
	return c.Strict.Margin < max(region.Jitter, across.Jitter) && lost > hastyLoss
}

// intact reports whether nothing keeps rights and owners of a limit from
// daemons: some that do not refuse the one that was asked have the record, all
// ran when the window before began, and before any hit that counts, every
// region has a share, a window is longer than messages take, callers wait for
// as long as disks and other regions take, daemons of the region refuse none of
// each other, and owners reach a majority of their voters.
func (r *recovery) intact(p *probe, l *rules.Limit) bool {
	w := r.world
	window := time.Duration(l.Window()) * time.Millisecond
	// A daemon takes the record, and with it the voters of owners, only from
	// daemons that it does not refuse.
	begun := func(o *Daemon) bool { return o.control == nil || o.control.Record() != nil }
	if !slices.ContainsFunc(w.daemons, func(o *Daemon) bool { return begun(o) && !p.asked.refuses(o) }) {
		return false // nobody has begun the cluster again, or it cannot join
	}
	if !l.Homed() && slices.ContainsFunc(w.local[p.asked.RegionIndex], p.asked.refuses) {
		return false // an epoch may leave it out
	}
	if !r.complete(l.Homed()) || l.Homed() && !(w.reachesOwners(p.asked) && founded(w, p.asked)) || window < freshLags*(w.cfg.Lag()+w.cfg.Network.Across.Jitter) {
		return false
	}
	if l.HomeInRegion() && !reclaims(w) {
		return false // an owner there grants the rights of its region
	}
	// An owner stores before it grants after a pause. Callers that wait for
	// less open its breaker with each probe.
	if s := &w.cfg.Strict; l.Homed() && min(s.Margin, s.Forward) < s.Sync {
		return false
	}
	across := &w.cfg.Network.Across
	if l.Homed() && len(w.regions) > 1 && hasty(w.cfg) {
		return false
	}
	if trip := 2 * (across.Delay + across.Jitter); l.Homed() && len(w.regions) > 1 && trip > max(ownerWait, w.cfg.Strict.Margin) {
		return false
	}
	_, history := quota.Of(l).RightsWindow(0)
	for _, d := range w.daemons {
		spare := w.now - d.started - 3*window - 2*w.cfg.Rights.Ahead
		// Hits of an earlier run count for all the history of a limit. What a
		// diskless daemon held before is held by none until its horizon ended.
		earlier := w.rights && l.HasRights() && d.started > 0
		if spare < 0 || earlier && (spare.Milliseconds() < history || forgets(d, w) && spare < w.cfg.Rights.DaemonHorizon) {
			return false
		}
	}
	return len(l.Weights) == 0 && !slices.Contains(w.cfg.Rights.Weights, 0) && !drained(w, p.asked)
}

// drained reports whether an operator took all rights from the region of a
// daemon, or gave it none: a cluster begins without regions of diskless daemons
// alone.
func drained(w *World, d *Daemon) bool {
	if d.control == nil || d.control.Record() == nil {
		return false
	}
	g := d.control.Record().Region(d.Region)
	durable := func(o *Daemon) bool { return w.cfg.controlOf(o).Durable }
	return g != nil && g.Weight == 0 || g == nil && !slices.ContainsFunc(w.local[d.RegionIndex], durable)
}

// founded reports whether nothing keeps the first layout of strict keys from
// becoming active, as a daemon knows it: there are most of the ids that the
// cluster began with, or all but those that are dead. An id that its daemon
// lost with its disk is dead once somebody noticed, and a recovery may drop
// that; then an operator must remove it.
func founded(w *World, d *Daemon) bool {
	if d.control == nil || d.control.Record() == nil || d.control.Record().Layouts.Active != nil {
		return true
	}
	r := d.control.Record()
	founders, have, gone := 0, 0, 0
	for i := range r.Regions {
		if r.Regions[i].Generation != r.FirstGeneration() {
			continue
		}
		for _, id := range r.Regions[i].Founders {
			founders++
			there := func(o *Daemon) bool { return o.control != nil && o.control.ID() == id }
			switch {
			case slices.ContainsFunc(w.daemons, there):
				have++
			case r.DeadID(id) == nil:
				gone++
			}
		}
	}
	return gone == 0 || 2*have > founders
}

// lostVotes reports whether a daemon that lost its disk, or the machine before
// the first entry was on it, does not vote. It needs the state of all other
// voters: where two lost their disks before one of them had copied, neither
// votes again.
func (d *Daemon) lostVotes() bool {
	return d.lostLog && !d.acceptor.Acceptor.Status().Voting
}

// unserved returns the first reason why a client is not served, "" for none.
func (r *recovery) unserved() string {
	// What an operator must do first, such as a recovery, is done in there.
	if reason := uncontrolled(r.world); reason != "" {
		return reason
	}
	for i := range r.probes {
		switch p := &r.probes[i]; {
		case p.done:
		case p.asked != nil:
			return fmt.Sprintf("%s: a call for %v has no answer", p.asked.Name, p.entries)
		default:
			return fmt.Sprintf("key %v: %s", p.entries, p.why)
		}
	}
	for _, d := range r.world.daemons {
		if d.Up && d.process != nil && d.process.Waiters.Len() > 0 {
			return fmt.Sprintf("%s: %d calls have no answer", d.Name, d.process.Waiters.Len())
		}
	}
	if reason := r.unsettled(); reason != "" || r.world.cfg.Settle == 0 {
		return reason
	}
	return r.world.Pending() // about these calls
}

// complete reports whether all daemons run with their stored state. Voters of
// owners recover lost state from other voters, and regions reclaim the rights
// of few daemons.
func (r *recovery) complete(owners bool) bool {
	w := r.world
	lost := slices.ContainsFunc(w.cfg.Faults, func(f Fault) bool {
		switch f.Kind {
		case RemoveDaemon:
			return w.cfg.Control != nil // perhaps all of a region
		case LostVoters:
			return !owners // the rights of all of a region may be lost
		case WrongClock:
			return false
		}
		return f.Rename && !w.onlyForgets(f.From) || f.Kind.Known()
	})
	missing := slices.ContainsFunc(w.daemons, func(d *Daemon) bool { return !d.Up })
	return !lost && !missing && len(w.cfg.Outside) == 0 && (owners || reclaims(w))
}

// reclaims reports whether every region can reclaim the rights that its daemons
// with a disk held in records that they lost, or had not stored when they
// ended: those of at most a third of them, and each of them once. With a
// horizon these reclaim the rights of all diskless ones, but for those that
// shared them out among themselves when the last one with a disk left.
func reclaims(w *World) bool {
	return !slices.ContainsFunc(w.local, func(local []*Daemon) bool {
		lost, damaged := 0, 0
		forgetful := func(d *Daemon) bool { return forgets(d, w) }
		pods := slices.DeleteFunc(slices.Clone(local), func(d *Daemon) bool { return !forgetful(d) })
		local = slices.DeleteFunc(slices.Clone(local), forgetful)
		for _, d := range local {
			if lost += d.unrecorded; d.damaged {
				damaged++
			}
		}
		gone, ended := absent(local)
		lost += max(damaged, gone)
		if len(pods) > 0 && len(local) > 0 && holders(local, pods) == 0 || !remembered(slices.Concat(local, pods)) {
			return true
		}
		return lost > 0 && (lost+ended > holders(local, pods)/3 || w.cfg.Rights.DaemonHorizon <= 0)
	})
}

// remembered reports whether a daemon is left that took part when the rights of
// its region were shared out last: others join through such a one.
func remembered(local []*Daemon) bool {
	agents := slices.DeleteFunc(slices.Clone(local), func(d *Daemon) bool { return d.agent == nil })
	return len(agents) == 0 || slices.ContainsFunc(agents, func(d *Daemon) bool {
		all := d.agent.Agent.Status().Daemons
		return len(all) == 0 || slices.ContainsFunc(all[0].Members, func(m agent.MemberStatus) bool { return m.Name == d.Name })
	})
}

// absent returns how many founders of a region's generation no daemon has the
// id of any more, nor had a record of rights with it: one can lose its disk
// before the cluster begins with it.
// ended are the daemons whose ids are dead, while they still hold rights: they
// are retired, and help to reclaim nothing. They are founders, or ids that an
// epoch names which others wait for.
func absent(local []*Daemon) (n, ended int) {
	if len(local) == 0 || local[0].control == nil || local[0].control.Record() == nil {
		return 0, 0
	}
	r := local[0].control.Record()
	g := r.Region(local[0].Region)
	if g == nil {
		return 0, 0
	}
	first := slices.ContainsFunc(local, func(d *Daemon) bool {
		return d.agent != nil && d.agent.Agent.Status().Daemons[0].Since == 0
	})
	for _, id := range g.Founders {
		switch {
		case r.DeadID(id) != nil && first:
			ended++
		case r.DeadID(id) == nil && !slices.ContainsFunc(local, func(d *Daemon) bool {
			return d.control != nil && d.control.ID() == id || slices.Contains(d.forgotten, id)
		}):
			n++
		}
	}
	for i := range r.Dead {
		if id := r.Dead[i].ID; !slices.Contains(g.Founders, id) && slices.ContainsFunc(local, func(d *Daemon) bool { return awaits(d, id) }) {
			ended++
		}
	}
	return n, ended
}

// awaits reports whether a daemon knows an epoch of its region that a dead id
// keeps from being settled.
func awaits(d *Daemon, id control.ID) bool {
	return d.agent != nil && slices.ContainsFunc(d.agent.Agent.Status().Daemons, func(e agent.EpochStatus) bool {
		return !e.Settled && slices.ContainsFunc(e.Missing, func(name string) bool {
			return strings.HasSuffix(name, fmt.Sprintf(" %016x", id.Member()))
		})
	})
}

// holders returns how many of the daemons of a region share out its rights, at
// least, without diskless ones: a generation begins with the daemons that were
// live then, and an epoch leaves out those that cannot be reached.
func holders(local, pods []*Daemon) int {
	n := len(local)
	for _, d := range local {
		if d.agent == nil {
			continue
		}
		for _, e := range d.agent.Agent.Status().Daemons {
			durable := 0
			for _, m := range e.Members {
				if slices.ContainsFunc(local, func(o *Daemon) bool { return m.Name == o.Name || strings.HasPrefix(m.Name, o.Name+",") }) {
					durable++
				}
			}
			n = min(n, durable)
		}
	}
	return n
}

// replaced reports whether an operator added a region again before a recovery
// repeated the addition that it had dropped. Epochs with the former generation
// wait until the operator removes the region with all its daemons stopped.
func replaced(d *Daemon) bool {
	if d.control == nil || d.control.Record() == nil {
		return false
	}
	r := d.control.Record()
	return slices.ContainsFunc(r.Dropped, func(c control.Command) bool {
		if c.Added == nil {
			return false
		}
		g := r.Region(c.Added.Name)
		return g != nil && g.Generation != c.Version
	})
}

// unsettled returns an epoch that some daemon has not settled, "" for none or
// where an operator would have to act. An epoch needs all daemons of its table:
// those of the region, or of all regions. It is settled only if none of them
// refuses another one. Epochs of regions are entries of the control log;
// without one, nobody proposes again what was lost before it was stored.
func (r *recovery) unsettled() string {
	w := r.world
	if !r.complete(false) || apart(w) {
		return ""
	}
	for _, d := range w.daemons {
		if d.agent == nil {
			continue
		}
		s := d.agent.Agent.Status()
		for local, table := range [][]agent.EpochStatus{s.Regions, s.Daemons} {
			if local == 0 && (d.control == nil || replaced(d)) || slices.ContainsFunc(w.daemons, func(o *Daemon) bool { return d.refuses(o) && (local == 0 || o.Region == d.Region) }) {
				continue
			}
			for i := range table {
				if e := &table[i]; !e.Settled {
					return fmt.Sprintf("%s: epoch %s is not settled, %v have not acknowledged it, %v not voted", d.Name, e.ID, e.Missing, e.NoVote)
				}
			}
		}
	}
	return ""
}
