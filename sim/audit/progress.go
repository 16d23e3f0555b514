package audit

import (
	"slices"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/sim"
)

// progressAuditor checks that a client well under its limit is admitted when
// the cluster has been whole for manyLags: half of the limit is unused, and few
// hits came lately. It also checks that every replica of the core is synced in
// the end.
type progressAuditor struct {
	finding
	lag    time.Duration // of views across regions, when nothing goes wrong
	looked time.Duration
	since  time.Duration // when the cluster became whole
	whole  bool
	// broke is when it last was not, and drained when buckets have drained the
	// hits of the times before: replicas charge them when they arrive.
	broke, drained time.Duration
}

// lookAgain is for how long the cluster is taken as it was. manyLags is how
// many lags counts may take to reach everybody, and littleOf the part of a
// limit that is little in that time.
const (
	lookAgain = 100 * time.Millisecond
	manyLags  = 10
	littleOf  = 16
)

func progress(a *sim.Auditor, t *truth) {
	p := &progressAuditor{
		finding: finding{a, t}, lag: t.world.Config().Lag(), looked: unknown,
	}
	a.Stepped, a.Decided, a.Ended = p.stepped, p.decided, p.ended
	a.Down = func(*sim.Daemon) { p.become(false) }
}

func (a *progressAuditor) stepped(*sim.Daemon, *gossip.Message, error) {
	now := a.world.Now()
	if a.looked != unknown && now-a.looked < lookAgain {
		return
	}
	a.looked = now
	a.become(a.isWhole())
}

// become notes whether the cluster is whole now.
func (a *progressAuditor) become(whole bool) {
	switch now := a.world.Now(); {
	case whole && !a.whole:
		a.since = now
		a.drained = max(a.drained, now) + now - a.broke
	case a.whole && !whole:
		a.broke = now
	}
	a.whole = whole
}

// isWhole reports whether all daemons are up, reach each other, are synced and
// agree on the time.
func (a *progressAuditor) isWhole() bool {
	if a.world.Faulty() {
		return false
	}
	all := a.world.Daemons()
	for _, d := range all {
		if !d.Up || d.Paused || !d.Synced() {
			return false
		}
		for _, o := range all {
			if !a.world.Connected(d, o) {
				return false
			}
		}
	}
	least, most := a.ahead()
	return most-least <= a.maxOffset.Milliseconds()
}

func (a *progressAuditor) decided(d *sim.Decided) {
	e, l := &a.entry, d.Limit
	// A lack of rights is no excuse: they are to come back.
	degraded := d.Status.Degraded != node.NotDegraded && d.Status.Degraded != node.NoRights
	quiet := a.whole && d.At-a.since >= manyLags*a.lag
	if !quiet || !a.checkable(d) || degraded || l.CarryDebt || a.excused(d) {
		return
	}
	limit := quota.Of(l).Capacity()
	if e.usage.before+float64(d.Hits) > float64(limit)/2 {
		return
	}
	denied := d.Status.Over && d.Status.Gate&node.RightsGate == 0
	if !a.ok(!denied || (e.lately(d, manyLags*a.lag)+uint64(a.unrefunded(d)))*littleOf > limit) {
		a.fail("%s denied %d hits of %s, with %.6g of %d used, in a cluster that was whole for %v",
			d.Daemon.Name, d.Hits, ruleName(d), e.usage.before, limit, d.At-a.since)
	}
}

// excused reports whether the ground truth does not show the counts of the
// replica. A bucket that always gets more than it mints never shows a replica
// that joined late that it counted too much as used, and one that gets the hits
// of a network partition charges them when they arrive (ADR 7). A prior leaves
// hits to daemons that need them no more (ADR 40).
func (a *progressAuditor) excused(d *sim.Decided) bool {
	e, l := &a.entry, d.Limit
	drains := quota.Of(l).Drains()
	joined := drains && a.starts[d.Daemon.Index] > 1
	late := drains && d.At < a.drained+e.counter.bucket.fill
	return a.homed(l) || joined || late || a.priorLeaves(d, manyLags*a.lag) || e.learning(d) || a.anyRestored() || e.usage.mixed || e.counter.rescoped || e.uncertain(l)
}

// lately returns the hits charged in the last while before a decision.
func (e *entry) lately(d *sim.Decided, while time.Duration) uint64 {
	n, c := uint64(0), e.counter
	for i := len(c.windows) - 1; i >= 0; i-- {
		for j := range c.windows[i].counts {
			k := &c.windows[i].counts[j]
			n += k.charged - before(k.steps, d.At-while)
		}
		if !quota.Of(d.Limit).Stamped() && i < len(c.windows)-2 {
			break
		}
	}
	return n - min(n, e.charged)
}

func (a *progressAuditor) ended(settled bool) {
	if !settled {
		return
	}
	for _, d := range slices.Concat(a.world.Core()...) {
		for s, n := range d.Nodes {
			a.check(n.Synced(), "%s, shard %d, is not synced in the end", d.Name, s)
		}
	}
}
