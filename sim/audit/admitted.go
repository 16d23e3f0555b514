package audit

import (
	"math"
	"slices"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// admittedAuditor compares the hits that the world admits, under limits with
// rights or with owners, with the sum of all rights: L(1+b), or L where a limit
// is partitioned or strict. No fault excuses more, but for what on_failure:
// allow admits, and limits with owners once more for each time that the clocks
// of most daemons of a region ended watermarks in the future.
//
//	fixed_window    all admitted in a window
//	sliding_window  the weighted count at the clock of the replica; one that is
//	                s behind gives the window before a weight of s/W more
//	sliding_log     the stamps of any interval as long as the window; shorter by
//	                s where owners grant them
//	buckets         (1+b)(B + rT + r step + 2rs) over any time T
//
// s is how far window clocks stood apart at most so far. While rule sets change
// the greatest limit in force anywhere counts, and one window after all daemons
// have the new set, only the new one. Left out are rules that had no
// rights, or another grid, in one of them, and keys that a replica reported to
// have no room for.
//
// Under a policy without rights it counts how often the same was exceeded,
// which is no violation there.
type admittedAuditor struct {
	finding
	policy sim.Policy
	mixed  bool // placements depend on the daemon, and rights bind nevertheless
	rules  perRule[exceeded]
}

// spent is the auditor's account of a counter.
type spent struct {
	known    bool
	window   int64
	oldest   int // rule set that was in force somewhere when the window began
	before   int // the same of the window before
	exceeded bool
	meter    meter // of a bucket
}

// exceeded is how often a rule admitted more than its rights sum to.
type exceeded struct {
	windows uint64
	worst   float64 // as a ratio of the total
	allowed float64 // b
}

func admitted(a *sim.Auditor, t *truth) {
	cfg := t.world.Config()
	x := &admittedAuditor{finding: finding{a, t}, policy: cfg.Policy, rules: newPerRule[exceeded]()}
	x.mixed = slices.ContainsFunc(cfg.Faults, func(f sim.Fault) bool { return f.Kind == sim.MixedLimits })
	a.Decided, a.Refunded, a.Fill = x.decided, x.refunded, x.fill
}

func (a *admittedAuditor) decided(d *sim.Decided) {
	e, l := &a.entry, d.Limit
	if !a.checkable(d) || e.window == nil || isOverride(d) || !bounded(l) || e.free > 0 || e.counter.overridden {
		return
	}
	k := a.spentOf(l)
	total, ok := a.total(d, k)
	if !ok || e.uncertain(l) && !l.Homed() || e.counter.rescoped {
		return
	}
	s := a.rule(d)
	if e.admitted == 0 {
		return
	}
	used, bound := a.used(d, k, total)
	if l.Homed() {
		bound *= 1 + float64(a.endedAhead())
	}
	if used <= bound*(1+1e-12) {
		a.Pass(1)
		return
	}
	if !k.exceeded {
		k.exceeded = true
		s.windows++
	}
	s.worst = max(s.worst, used/max(1, bound)-1)
	if !a.ok(!a.policy.HasRights()) {
		a.fail("%s admitted %d hits of %s (%v) in %d: %.6g of at most %.6g; its rights sum to %.6g, clocks are %v apart",
			d.Daemon.Name, e.admitted, sim.RuleName(d.Rule), l.Algorithm, e.window.start, used, bound, total, a.skew())
	}
}

// spentOf returns the account of the counter of the latest decision, brought up
// to its window.
func (a *admittedAuditor) spentOf(l *rules.Limit) *spent {
	k, start := &a.entry.counter.spent, a.entry.window.start
	if !k.known { // any set so far may have counted it without rights before
		*k = spent{known: true, window: math.MinInt64}
	}
	if quota.Of(l).Stamped() { // its stamps count for a window
		start -= start % l.Window()
	}
	if start > k.window {
		k.window, k.before, k.oldest, k.exceeded = start, k.oldest, a.oldestSet(a.world.Now()), false
	}
	return k
}

// total returns the greatest sum of rights of a window under the sets that may
// be in force somewhere; false when some of them bound it otherwise.
func (a *admittedAuditor) total(d *sim.Decided, k *spent) (total float64, ok bool) {
	from := min(k.oldest, k.before)
	if quota.Of(d.Limit).Drains() {
		from = a.bindingSet(d)
		if from > k.meter.set { // the times before are over
			k.meter = meter{set: from, at: d.At}
		}
	}
	for _, set := range a.world.Sets()[from:] {
		r := set.Find(d.Rule.ID)
		if r == nil || r.Limit == nil || !bounded(r.Limit) || !a.alike(r.Limit, d.Limit) || r.Limit.Shadow {
			return 0, false
		}
		total = max(total, float64(a.totalOf(r.Limit)))
		k.meter.widen(r.Limit, a.policy)
	}
	return total, true
}

// bindingSet returns the oldest rule set that a bucket may have been filled by:
// the one that was in force before the rights of its steps ended and an empty
// bucket was full again.
func (a *truth) bindingSet(d *sim.Decided) int {
	_, length, carry := intervalOf(d.Limit, a.entry.now)
	while := time.Duration(2*(length+carry))*time.Millisecond + 2*a.entry.counter.bucket.fill + a.skew()
	return a.oldestSet(d.At - while)
}

// totalOf returns the sum of all rights of a window. A policy changes the
// rights of regions and daemons, not those of a key's owner.
func (a *admittedAuditor) totalOf(l *rules.Limit) uint64 {
	if owned(l) {
		return l.Total()
	}
	return a.policy.Total(l)
}

// owned reports whether one daemon grants all rights of a limit, or of the
// limit that each region has.
func owned(l *rules.Limit) bool {
	return l.Homed() && (l.Scope == rules.Region || !l.HomeInRegion())
}

// bounded reports whether rights bound the hits admitted under a limit.
func bounded(l *rules.Limit) bool { return l.HasRights() || l.Homed() }

// alike reports whether two limits divide the same rights, but for their
// number.
func (a *admittedAuditor) alike(l, m *rules.Limit) bool {
	placed := a.mixed || l.Homed() == m.Homed() && (!l.Homed() || l.HomeInRegion() == m.HomeInRegion())
	return placed && l.Grid() == m.Grid() && l.Scope == m.Scope &&
		(!l.Homed() || !m.Homed() || l.OnFailure == m.OnFailure && l.ReserveShare == m.ReserveShare)
}

// used returns the rights used with the latest decision, and the most that may
// be.
func (a *admittedAuditor) used(d *sim.Decided, k *spent, total float64) (used, bound float64) {
	e, l := &a.entry, d.Limit
	switch {
	case quota.Of(l).Drains():
		step := time.Duration(quota.Of(l).Step()) * time.Millisecond
		return k.meter.add(d.At, e.admitted), k.meter.bound(step, a.skew())
	case quota.Of(l).Stamped() && l.Homed():
		return e.counter.densest(e.window.start, max(0, l.Window()-a.skew().Milliseconds())), total
	case quota.Of(l).Stamped():
		return e.counter.densest(e.window.start, l.Window()), total
	}
	used, bound = float64(e.window.admitted-e.window.free), total
	if prev := e.prev(l); prev != nil {
		hits := float64(prev.admitted - prev.free)
		used += hits * e.left(l) / float64(l.Window())
		bound += hits * min(1, float64(a.skew().Milliseconds())/float64(l.Window()))
	}
	return used, bound
}

// densest returns the most that was admitted under the stamps of an interval
// that is as long as a window and holds a stamp.
func (c *counter) densest(stamp, length int64) float64 {
	last, _ := c.search(stamp + length)
	first := last
	sum, most := uint64(0), uint64(0)
	for i := last - 1; i >= 0 && c.windows[i].start > stamp-length; i-- {
		first = i
	}
	low := first
	for i := first; i < last; i++ {
		sum += c.windows[i].admitted - c.windows[i].free
		for c.windows[low].start <= c.windows[i].start-length {
			sum -= c.windows[low].admitted - c.windows[low].free
			low++
		}
		most = max(most, sum)
	}
	return float64(most)
}

// meter finds the worst time of a bucket. It drains at the rate that the world
// may have and fills with admitted hits, so its level is the most by which any
// time up to now exceeds its share of the rate.
type meter struct {
	set               int     // the oldest rule set that counts
	level, rate, room float64 // hits, hits per ns, hits
	at                time.Duration
}

// widen raises rate and room to those that a limit allows.
func (m *meter) widen(l *rules.Limit, p sim.Policy) {
	if !quota.Of(l).Drains() {
		return
	}
	share := 1.0
	if (!p.Plain() || owned(l)) && l.HasBudget && l.Consistency == rules.Eventual {
		share += float64(l.Budget) / float64(rules.Whole)
	}
	m.rate = max(m.rate, share*float64(l.Requests)/float64(l.Window()*int64(time.Millisecond)))
	m.room = max(m.room, share*float64(l.Burst))
}

// add drains the meter up to a time, fills it and returns its level.
func (m *meter) add(at time.Duration, hits uint64) float64 {
	m.level = max(0, m.level-m.rate*float64(at-m.at)) + float64(hits)
	m.at = at
	return m.level
}

// refunded takes refunded hits out of the meter of a bucket: rights that are
// recalled from counts do not show them.
func (a *admittedAuditor) refunded(*sim.Daemon, uint64, uint64, node.Refunded) {
	if r := &a.refund; r.charge != nil {
		m := &r.charge.counter.spent.meter
		m.add(a.world.Now(), 0)
		m.level = max(0, m.level-float64(r.admitted))
	}
}

// bound returns the highest level that is allowed.
func (m *meter) bound(step, skew time.Duration) float64 {
	return m.room + m.rate*float64(step+2*skew)
}

// rule returns the findings about the rule of a decision.
func (a *admittedAuditor) rule(d *sim.Decided) *exceeded {
	s := a.rules.of(d.Rule)
	if l := d.Limit; l.Requests > 0 {
		s.allowed = max(s.allowed, float64(a.totalOf(l))/float64(l.Requests)-1)
	}
	return s
}

func (a *admittedAuditor) fill(r *sim.Result) {
	for i := range r.Rules {
		row := &r.Rules[i]
		if s := a.rules.byName[row.Rule]; s != nil {
			row.Budget, row.Exceeded, row.ExceededWorst = s.allowed, s.windows, s.worst
		}
	}
}
