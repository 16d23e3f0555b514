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
// the sum. Counts that never arrive are left out. So are the hits of a sum but
// the latest one, of a key that is or was near its limit: a region may withhold
// them until that one.
type nears struct {
	truth          *truth
	region, across delays
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
	w, regions := e.window, len(n.truth.world.Regions())
	if e.charged == 0 || w == nil || d.Limit.Scope != rules.Global || !quota.Of(d.Limit).Resets() {
		return
	}
	near := 2*uint64(d.Status.Remaining) <= w.limit
	if !near && (w.near == nil || len(w.near.regions[e.process.region].steps) == 0) {
		return
	}
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
	if near && !keeps(d.Daemon, sums) { // else it is the aggregator
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
			hits := &w.near.regions[from.region]
			hits.known = upTo(hits.known, to.region)
			for k := &hits.known[to.region]; *k+1 < len(hits.steps) && hits.steps[*k+1].sum <= cell.Value.P; *k++ {
			}
			n.arrive(hits, to.region, cell.Value.P, &n.across)
		}
	}
}

// arrive measures the hits that a count has and that were not yet known in a
// region.
func (n *nears) arrive(hits *nearHits, region int, count uint64, ages *delays) {
	hits.known = upTo(hits.known, region)
	for k := &hits.known[region]; *k < len(hits.steps) && hits.steps[*k].sum <= count; *k++ {
		ages.add(n.truth.world.Now() - hits.steps[*k].at)
	}
}

// fill completes the staleness of a result.
func (n *nears) fill(s *sim.Staleness) {
	s.NearRegionP99Ms, s.NearAcrossP99Ms = n.region.p99(), n.across.p99()
}

// delays counts delays by milliseconds, the longest ones together.
type delays [10_000]uint64

func (d *delays) add(delay time.Duration) {
	d[min(max(0, int(delay.Milliseconds())), len(d)-1)]++
}

// p99 returns the milliseconds that 99 % of the delays do not exceed.
func (d *delays) p99() float64 {
	all, seen := uint64(0), uint64(0)
	for _, n := range d {
		all += n
	}
	for ms, n := range d {
		if seen += n; 100*seen >= 99*all && all > 0 {
			return float64(ms + 1)
		}
	}
	return 0
}
