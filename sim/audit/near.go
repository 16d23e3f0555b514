package audit

import (
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// nears measures how long counts of keys near their limits are under way: those
// of fixed windows of all daemons, of which at most half is left in the view of
// the daemon that counts. A count is known in its region when the aggregator
// has it, or first its successor, and in another region when a daemon there has
// the sum. Counts that never arrive are left out.
type nears struct {
	truth          *truth
	region, across sim.Histogram
}

// nearWindow is the hits of a window while the key is near its limit: of the
// processes that do not aggregate it, and of the regions.
type nearWindow struct {
	processes map[*process]*nearHits
	regions   []nearHits
}

// nearHits is the hits of a process or region, and how many of them are known
// in each region.
type nearHits struct {
	steps []step
	known []int
}

// decided notes a hit.
func (n *nears) decided(d *sim.Decided) {
	e := &n.truth.entry
	if w := e.window; e.charged == 0 || w == nil || d.Limit.Scope != rules.Global || !quota.Of(d.Limit).Resets() || 2*uint64(d.Status.Remaining) > w.limit {
		return
	}
	w, regions := e.window, len(n.truth.world.Regions())
	if w.near == nil {
		w.near = &nearWindow{map[*process]*nearHits{}, make([]nearHits, regions)}
	}
	sum := uint64(0)
	for i := range w.counts {
		if c := &w.counts[i]; n.truth.processes[c.process].region == e.process.region {
			sum += c.charged
		}
	}
	sums := gossip.CellID{Key: d.Key, Window: w.start, Kind: gossip.RegionSum, Incarnation: 1}
	if !keeps(d.Daemon, sums) { // else it is the aggregator
		own := recordOf(w.near.processes, e.process)
		own.steps = append(own.steps, step{d.At, w.count(e.process.index).charged})
	}
	all := &w.near.regions[e.process.region]
	all.steps = append(all.steps, step{d.At, sum})
}

// stepped notes what a message has.
func (n *nears) stepped(to, from *process, m *gossip.Message) {
	for i := range m.Cells {
		cell := &m.Cells[i]
		c := n.truth.counters[counterKey{cell.Key, everywhere}]
		if c == nil {
			continue
		}
		w := c.window(cell.Window)
		if w == nil || w.near == nil {
			continue
		}
		p := n.truth.byIncarnation[cell.Incarnation]
		switch {
		case cell.Kind == gossip.Daemon && p != nil && p != to && p.region == to.region:
			if hits := w.near.processes[p]; hits != nil {
				n.arrive(hits, to.region, cell.Value.P, &n.region)
			}
		case cell.Kind == gossip.RegionSum && from.region != to.region && cell.Incarnation == gossip.RegionIncarnation(from.daemon.Region):
			n.arrive(&w.near.regions[from.region], to.region, cell.Value.P, &n.across)
		}
	}
}

// arrive measures the hits that a count has and that were not yet known in a
// region.
func (n *nears) arrive(hits *nearHits, region int, count uint64, ages *sim.Histogram) {
	hits.known = upTo(hits.known, region)
	for k := &hits.known[region]; *k < len(hits.steps) && hits.steps[*k].sum <= count; *k++ {
		ages.Add(n.truth.world.Now() - hits.steps[*k].at)
	}
}

// fill completes the staleness of a result.
func (n *nears) fill(s *sim.Staleness) {
	const share = 0.99
	s.NearRegionP99Ms = float64(n.region.Quantile(share)) / float64(time.Millisecond)
	s.NearAcrossP99Ms = float64(n.across.Quantile(share)) / float64(time.Millisecond)
}
