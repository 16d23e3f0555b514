package audit

import (
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// convergenceAuditor compares the replicas of the core when all is quiet. The
// daemons of a region hold the same cells; what other regions hold of a region
// is the sum of them; and they are all that its live processes counted. Only
// cells count that live by every clock.
type convergenceAuditor struct{ finding }

func convergence(a *sim.Auditor, t *truth) {
	a.Ended = (&convergenceAuditor{finding{a, t}}).ended
}

func (a *convergenceAuditor) ended(settled bool) {
	if !settled {
		return
	}
	core := a.world.Core()
	low, high := a.world.Clocks(core)
	now := a.world.Now()
	for _, d := range slices.Concat(core...) {
		for _, n := range d.Nodes {
			clock := n.Millis(d.Instant(now))
			low, high = min(low, clock), max(high, clock)
		}
	}
	states := make([][]gossip.Cell, len(core)) // of the first daemon of each region
	for r, local := range core {
		states[r] = a.state(local[0], low, high)
		for _, d := range local[1:] {
			a.same(local[0], d, states[r], a.state(d, low, high))
		}
		if !a.noRoom {
			a.complete(local, states[r], low, high)
		}
	}
	for r, local := range core {
		sums := sumsOf(states[r])
		for o, other := range core {
			if o != r {
				a.sums(other[0], local[0].Region, sums, states[o])
			}
		}
	}
}

// state returns the cells of a daemon, in all shards, that every daemon of its
// region must hold: those of windows that began by the slowest clock and are
// not over by the fastest.
func (a *convergenceAuditor) state(d *sim.Daemon, low, high int64) []gossip.Cell {
	own := gossip.RegionIncarnation(d.Region)
	var all []gossip.Cell
	for _, n := range d.Nodes {
		for _, c := range n.Cells(d.Instant(a.world.Now())) {
			r := sharedRule(a.world.Rules(), c.Rule)
			alone := r != nil && r.Limit.Scope == rules.NodeLocal
			runs := c.Window <= low && c.End(c.Window) > high
			if runs && c.Kind.Counts() && (c.Kind == gossip.Daemon || c.Incarnation != own) && !alone {
				c.Rate = 0 // a measurement
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b gossip.Cell) int { return a.Compare(b.CellID) })
	return all
}

// same compares two daemons of a region.
func (a *convergenceAuditor) same(d, o *sim.Daemon, is, other []gossip.Cell) {
	for i := range min(len(is), len(other)) {
		if is[i] != other[i] {
			a.fail("%s holds %v and %s holds %v", d.Name, is[i], o.Name, other[i])
			return
		}
	}
	if !a.ok(len(is) == len(other)) {
		a.fail("%s holds %d cells and %s %d", d.Name, len(is), o.Name, len(other))
	}
}

// complete checks that a state has all that the processes of a region counted.
func (a *convergenceAuditor) complete(local []*sim.Daemon, state []gossip.Cell, low, high int64) {
	region := local[0].RegionIndex
	for _, c := range a.all {
		if c.rescoped || c.unsure || c.domain != everywhere && c.domain != region {
			continue
		}
		for _, w := range c.windows {
			if w.start > low || w.least <= high || w.unsure {
				continue
			}
			for i := range w.counts {
				p := a.processes[w.counts[i].process]
				if !p.up || p.region != region {
					continue // its latest hits may have gone with it
				}
				id := gossip.CellID{Key: c.key, Window: w.start, Kind: gossip.Daemon, Incarnation: p.incarnation}
				has := valueOf(state, id).P
				if !a.ok(has == w.counts[i].charged) {
					a.fail("%s holds %d of %v, which %s counted as %d",
						local[0].Name, has, gossip.Cell{CellID: id}, p.name(), w.counts[i].charged)
					return
				}
			}
		}
	}
}

// sumsOf adds up the counts of a region's daemons, without those that must not
// leave it.
func sumsOf(state []gossip.Cell) []gossip.Cell {
	var sums []gossip.Cell
	for _, c := range state {
		if c.Kind == gossip.Daemon && !c.Regional {
			c.Incarnation = 0
			sums = append(sums, c)
		}
	}
	slices.SortFunc(sums, func(a, b gossip.Cell) int { return a.Compare(b.CellID) })
	out := sums[:0]
	for _, c := range sums {
		if n := len(out); n > 0 && out[n-1].CellID == c.CellID {
			out[n-1].Value = crdt.PN{P: out[n-1].Value.P + c.Value.P, N: out[n-1].Value.N + c.Value.N}
		} else {
			out = append(out, c)
		}
	}
	return out
}

// sums compares the sums of another region that a daemon holds with the true
// ones.
func (a *convergenceAuditor) sums(d *sim.Daemon, region string, sums, state []gossip.Cell) {
	moved := a.world.Rescoped()
	for _, want := range sums {
		if moved[want.Rule] {
			continue
		}
		id := want.CellID
		id.Kind, id.Incarnation = gossip.RegionSum, gossip.RegionIncarnation(region)
		if has := valueOf(state, id); has != want.Value {
			a.fail("%s holds %v of region %s, whose daemons hold %v", d.Name, has, region, want)
			return
		}
	}
	a.Pass(1)
}
