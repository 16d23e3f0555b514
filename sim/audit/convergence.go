package audit

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/sim"
)

// convergenceAuditor compares the replicas of the core with the ground truth
// once they agree with each other, which World.Pending has found. They hold all
// that the live processes of their region counted, and those that left and
// handed their counts over. Only cells count that live by every clock. A
// process may delay its latest hits: after a reload World.Pending leaves out
// windows that are over, and their cells may still live.
type convergenceAuditor struct{ finding }

func convergence(a *sim.Auditor, t *truth) {
	a.Settled = (&convergenceAuditor{finding{a, t}}).settled
}

func (a *convergenceAuditor) settled() {
	core := a.world.Core()
	low, high := a.world.Clocks(core)
	for _, d := range slices.Concat(core...) {
		for _, n := range d.Nodes {
			clock := n.Millis(d.Instant(a.world.Now()))
			low, high = min(low, clock), max(high, clock)
		}
	}
	for _, local := range core {
		if a.noRoom {
			break
		}
		for _, d := range local {
			a.complete(d, low, high)
		}
	}
}

func sameShards(a, b *sim.Daemon) bool { return a.Settings().Shards == b.Settings().Shards }

// complete checks that a daemon has all that the live processes of its region
// counted of the keys that it keeps, in the windows that began by the slowest
// clock and are not over by the fastest. Daemons of other numbers of shards
// refuse each other.
func (a *convergenceAuditor) complete(d *sim.Daemon, low, high int64) {
	var held [][]gossip.Cell // by shard
	for _, n := range d.Nodes {
		held = append(held, n.Cells(d.Instant(a.world.Now()), nil))
	}
	for _, c := range a.all {
		if c.rescoped || c.unsure || c.domain != everywhere && c.domain != d.RegionIndex {
			continue
		}
		for _, w := range c.windows {
			if w.start > low || w.least <= high || w.unsure {
				continue
			}
			for i := range w.counts {
				p := a.processes[w.counts[i].process]
				id := gossip.CellID{Key: c.key, Window: w.start, Kind: gossip.Daemon, Incarnation: p.incarnation}
				if p != a.up[d.Index] && !a.kept(d, id, p) || p.region != d.RegionIndex || !sameShards(p.daemon, d) || !p.up && !a.handedOver(p) {
					continue // its latest hits may have gone with it
				}
				k := &w.counts[i]
				least := crdt.PN{P: k.charged, N: k.refunded}
				if sent := a.sent(p, d); sent <= a.world.Now() {
					least = crdt.PN{P: before(k.steps, sent), N: before(k.backs, sent)}
				}
				has := valueOf(held[node.ShardOf(c.key, len(held))], id)
				if !a.ok(has.P >= least.P && has.P <= k.charged && has.N >= least.N && has.N <= k.refunded) {
					a.fail("%s holds %d of %v and %d refunded, which %s counted as %d and %d",
						d.Name, has.P, gossip.Cell{CellID: id}, has.N, p.name(), k.charged, k.refunded)
					return
				}
			}
		}
	}
}

// sent returns the time up to which a daemon must have the counts of a process:
// one that left handed them over, and others may delay them.
func (a *convergenceAuditor) sent(p *process, d *sim.Daemon) time.Duration {
	switch {
	case !p.up:
		return p.left
	case a.gossip.Quiet > 0 && p != a.up[d.Index]:
		return a.world.Now() - a.world.Config().Lag()
	}
	return a.world.Now() + 1
}

// kept reports whether a daemon keeps a cell of a process, also in the view of
// that: one of them may take the aggregator for silent before the other does.
func (a *convergenceAuditor) kept(d *sim.Daemon, id gossip.CellID, p *process) bool {
	return keeps(d, id) && (!p.up || keptBy(p.daemon, id, a.up[d.Index]))
}
