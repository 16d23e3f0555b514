package sim

import (
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
)

// convergenceAuditor compares the replicas of the core when all is quiet: in a
// region they hold the same cells, and what the daemons of a region hold of
// each other adds up to what other regions hold of it. Only cells count that
// live by every replica's clock.
type convergenceAuditor struct{ watcher }

func newConvergenceAuditor(b *books) *convergenceAuditor {
	return &convergenceAuditor{newWatcher("convergence", b)}
}

// Ended compares the core, where it was healed.
func (a *convergenceAuditor) Ended(w *World, healed bool) {
	if !healed {
		return
	}
	core := w.core()
	low, high := w.readings(core)
	for _, d := range slices.Concat(core...) {
		for s := range d.Nodes {
			now := a.books.clocks.of(d, s).read(w.Now(), d.Instant(w.Now()))
			low, high = min(low, now), max(high, now)
		}
	}
	states := make([][]gossip.Cell, len(core)) // of each region, what its first daemon holds
	for r, local := range core {
		states[r] = a.state(w, local[0], low, high)
		for _, d := range local[1:] {
			a.same(w, local[0], d, states[r], a.state(w, d, low, high))
		}
	}
	for r, local := range core {
		sums := sumsOf(states[r])
		for o, other := range core {
			if o != r {
				a.sums(w, other[0], local[0].Region, sums, states[o])
			}
		}
	}
}

// state is what a daemon holds in all shards and others must hold too: of
// labels that began by the slowest clock and are not over by the fastest.
func (a *convergenceAuditor) state(w *World, d *Daemon, low, high int64) []gossip.Cell {
	own := gossip.RegionIncarnation(d.Region)
	var all []gossip.Cell
	for _, n := range d.Nodes {
		for _, c := range n.Cells(d.Instant(w.Now())) {
			r := sharedRule(w.Rules(), c.Rule)
			local := r != nil && r.Limit != nil && r.Limit.Scope == rules.NodeLocal
			lives := c.Window <= low && c.End(c.Window) > high
			if lives && c.Kind.Counts() && (c.Kind == gossip.Daemon || c.Incarnation != own) && !local {
				c.Rate = 0 // a measurement
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b gossip.Cell) int { return a.Compare(b.CellID) })
	return all
}

// same compares two daemons of a region.
func (a *convergenceAuditor) same(w *World, d, o *Daemon, is, other []gossip.Cell) {
	for i := range max(len(is), len(other)) {
		switch {
		case i >= len(is) || i < len(other) && other[i].Compare(is[i].CellID) < 0:
			a.failed(w, "%s holds %v and %s does not", o.Name, other[i], d.Name)
			return
		case i >= len(other) || is[i].Compare(other[i].CellID) < 0:
			a.failed(w, "%s holds %v and %s does not", d.Name, is[i], o.Name)
			return
		case is[i] != other[i]:
			a.failed(w, "%s holds %v and %s holds %v", d.Name, is[i], o.Name, other[i])
			return
		}
	}
	a.passed(1)
}

// sumsOf adds up what the daemons of a region counted, but for what must not
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

// sums compares what a daemon holds of another region with the truth there.
func (a *convergenceAuditor) sums(w *World, d *Daemon, region string, sums, state []gossip.Cell) {
	incarnation, moved := gossip.RegionIncarnation(region), w.rescoped()
	for _, want := range sums {
		if moved[want.Rule] {
			continue
		}
		id := want.CellID
		id.Kind, id.Incarnation = gossip.RegionSum, incarnation
		i, ok := slices.BinarySearchFunc(state, id, func(c gossip.Cell, id gossip.CellID) int { return c.Compare(id) })
		if !ok {
			a.failed(w, "%s holds nothing of region %s, whose daemons hold %v", d.Name, region, want)
			return
		}
		if state[i].Value != want.Value {
			a.failed(w, "%s holds %v of region %s, whose daemons hold %v", d.Name, state[i], region, want)
			return
		}
	}
	a.passed(1)
}
