package audit

import (
	"math"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// denialAuditor checks that a denial has a reason in the ground truth: the hits
// that were counted, and what may be extrapolated of others: a rate that they
// showed in the window, for as long as views of them are old. Where nobody else
// counted, nothing but the counts is a reason.
//
//   - A bucket may take late hits as if they came when they arrived: it stands
//     higher by its rate times the greatest age of views so far, and by as
//     much as the replica's clock lost. A process that restarts learns counts
//     that are as old as its peers.
//   - A log keeps hits of a clock that is ahead for longer.
//   - A replica that first decides on a bucket does not know when the hits of
//     others came (see entry.learning).
//   - A region that restored counts may count them twice.
//   - A refund elsewhere is not known at once.
//   - At the start of a window a part of the limit is left to others that
//     exhausted the key in the windows before (see foreseen).
//
// Left out are denials by rights and by owners, degraded answers, rules that
// carry a debt, and keys whose scope changed. The overage auditor counts the
// denials that complete knowledge would have avoided.
type denialAuditor struct {
	finding
	ages   []time.Duration // of views, by pair of regions
	agesAt time.Duration
	recent [samples]sample             // of ages, by time
	late   time.Duration               // the greatest of all so far
	linked perDirection[time.Duration] // when the first process last had a link to the second
}

func denials(a *sim.Auditor, t *truth) {
	n := len(t.world.Regions())
	d := &denialAuditor{finding: finding{a, t}, agesAt: unknown, ages: make([]time.Duration, n*n)}
	a.Decided = d.decided
	a.Restarted = func(o *sim.Daemon) {
		if t.starts[o.Index] > 1 {
			d.late = max(d.late, 2*(t.world.Now()+time.Minute))
		}
	}
}

// sample has the greatest ages of the looks in one lookEvery, the number-th of
// the run.
type sample struct {
	number time.Duration
	ages   []time.Duration // by pair of regions, nil for none
}

// samples bounds how long ages are kept, in lookEvery.
const samples = 256

// lookEvery is how often the ages of views are read at least, while calls are
// decided, so that late is not missed between two denials. An age grows by no
// more than that until the next look.
const lookEvery = 100 * time.Millisecond

func (a *denialAuditor) decided(d *sim.Decided) {
	e, l := &a.entry, d.Limit
	defer a.offer(d)
	if a.world.Now() >= a.agesAt+lookEvery {
		a.look()
	}
	if !d.Status.Over || !a.checkable(d) || d.Status.Degraded != node.NotDegraded || l.CarryDebt {
		return
	}
	used, limit := e.usage.before+float64(d.Hits), float64(quota.Of(l).Capacity())
	excused := a.homed(l) || e.usage.mixed || e.counter.rescoped || e.uncertain(l)
	if used > limit || excused || d.Status.Gate&node.RightsGate != 0 || a.anyRestored() {
		a.Pass(1)
		return
	}
	extra := a.slack(d) + 1 // for rounding
	if used+extra <= limit {
		extra += a.unrefunded(d)
	}
	if used+extra <= limit && !a.naive {
		extra += a.extrapolated(d) + a.surged(d)
	}
	if !a.ok(used+extra > limit || !a.naive && a.foreseen(d)) {
		a.fail("%s denied %d hits of %s (%v), with %.6g of %.6g used in the world and at most %.6g to be estimated",
			d.Daemon.Name, d.Hits, ruleName(d), l.Algorithm, e.usage.before, limit, extra)
	}
}

// slack returns how much more a replica may hold for used than was, because
// hits are late or clocks differ.
func (a *denialAuditor) slack(d *sim.Decided) float64 {
	e, l := &a.entry, d.Limit
	switch {
	case quota.Of(l).Drains():
		if e.learning(d) {
			return math.Inf(1)
		}
		a.look()
		return e.counter.bucket.rate*(float64(a.late)+float64(a.skew())) + 1
	case quota.Of(l).Stamped():
		n, from := 0.0, e.now-l.Window()-a.skew().Milliseconds()-1
		for _, w := range e.counter.windows {
			if w.start > from && w.start <= e.now-l.Window() {
				n += float64(w.charged)
			}
		}
		return n
	}
	return 0
}

// extrapolated returns the most that a replica may have estimated others to
// have counted in the window since its views of them.
func (a *denialAuditor) extrapolated(d *sim.Decided) float64 {
	e := &a.entry
	if e.window == nil || quota.Of(d.Limit).Stamped() {
		return 0
	}
	a.look()
	sum := 0.0
	for i := range e.window.counts {
		c := &e.window.counts[i]
		if c.process == e.process.index {
			continue
		}
		region, interval, least := a.processes[c.process].region, a.gossip.Interval, a.quickest.Interval
		if region != e.process.region {
			interval, least = a.gossip.WANInterval, a.quickest.WANInterval
		}
		age := a.reported(e.process.region, region)
		if age == math.MaxInt64 {
			return math.Inf(1)
		}
		age += interval
		sum += min(c.steepest(d.At, age+a.late, least)*float64(age), float64(quota.Of(d.Limit).Capacity()))
	}
	return sum
}

// surged returns the most hits that an aggregator of the process's region may
// have foreseen in the first seconds of a fixed window: as many in each region
// as in its own, and by how much these grow until its notice ends.
func (a *denialAuditor) surged(d *sim.Decided) float64 {
	e, ends := &a.entry, gossip.SurgeFor+a.priorLag()
	shortest := gossip.SurgeLags * a.quickest.MinGap
	if e.window == nil || !quota.Of(d.Limit).Resets() || d.Limit.Scope == rules.NodeLocal || d.Limit.Window() < shortest.Milliseconds() {
		return 0
	}
	own, began := uint64(0), d.At
	for i := range e.window.counts {
		if c := &e.window.counts[i]; a.processes[c.process].region == e.process.region && len(c.steps) > 0 {
			own, began = own+c.charged, min(began, c.steps[0].at)
		}
	}
	if d.At-began > ends {
		return 0
	}
	return float64(own) * float64(len(a.world.Regions())) * (1 + float64(ends)/float64(a.quickest.Interval))
}

// look reads the ages of all views, once per instant, and keeps the greatest of
// each pair of regions. An age is the greatest duration while a process has no
// view of another.
func (a *denialAuditor) look() {
	now, n := a.world.Now(), len(a.world.Regions())
	if a.agesAt == now {
		return
	}
	a.agesAt = now
	clear(a.ages)
	for _, p := range a.up {
		if p == nil {
			continue
		}
		for _, node := range p.daemon.Nodes {
			for l := range node.Links(p.daemon.Instant(now)) {
				o := a.byIncarnation[l.Peer.ID]
				if o == nil {
					continue
				}
				age := time.Duration(math.MaxInt64)
				if l.Unsent >= 0 {
					age = l.Unsent + max(0, l.RTT)
					*a.linked.of(direction{p.index, o.index, 0}) = now
				}
				pair := &a.ages[p.region*n+o.region]
				*pair = max(*pair, age)
			}
		}
	}
	a.keep(now)
	a.unlinked(now)
	for to := range n {
		for from := range n {
			if age := a.age(to, from); age != math.MaxInt64 {
				a.late = max(a.late, 2*(age+lookEvery))
			}
		}
	}
}

// unlinked reads the ages of processes that are up and no peers, or peers of
// which there is no view: their counts come alone, when they are expedited.
// Others send the counts of a process when these lose it too.
func (a *denialAuditor) unlinked(now time.Duration) {
	for _, p := range a.up {
		for _, o := range a.up {
			if p != nil && o != nil && p != o {
				since := max(*a.linked.of(direction{p.index, o.index, 0}), p.born, o.born)
				a.late = max(a.late, 2*(now-since+lookEvery))
			}
		}
	}
}

// age returns how old counts of a region may be in another one: across regions
// they take three hops.
func (a *denialAuditor) age(to, from int) time.Duration {
	n := len(a.world.Regions())
	if to == from {
		return a.ages[to*n+to]
	}
	sum := time.Duration(0)
	for _, hop := range []time.Duration{a.ages[to*n+to], a.ages[to*n+from], a.ages[from*n+from]} {
		if hop == math.MaxInt64 {
			return hop
		}
		sum += hop
	}
	return sum
}

// keep adds the ages of a look to those of its time.
func (a *denialAuditor) keep(now time.Duration) {
	number := max(0, now) / lookEvery
	s := &a.recent[number%samples]
	if s.ages == nil {
		s.ages = make([]time.Duration, len(a.ages))
	} else if s.number != number {
		clear(s.ages)
	}
	s.number = number
	for i, age := range a.ages {
		s.ages[i] = max(s.ages[i], age)
	}
}

// greatest returns the greatest age of a pair of regions since a time.
func (a *denialAuditor) greatest(pair int, since time.Duration) time.Duration {
	age := a.ages[pair]
	for i := range a.recent {
		if s := &a.recent[i]; s.ages != nil && s.number >= since/lookEvery {
			age = max(age, s.ages[pair])
		}
	}
	return age
}

// reported returns how old a replica may take counts of a region to be. To its
// view it adds the ages that another region reported to it: they were true when
// they were sent, and the daemons that had them may have ended since.
func (a *denialAuditor) reported(to, from int) time.Duration {
	sum, n := a.age(to, from), len(a.world.Regions())
	if to == from || sum == math.MaxInt64 {
		return sum
	}
	sum = a.ages[to*n+to]
	for _, pair := range []int{to*n + from, from*n + from} {
		hop := a.greatest(pair, a.agesAt-sum)
		if hop == math.MaxInt64 {
			return hop
		}
		sum += hop
	}
	return sum
}
