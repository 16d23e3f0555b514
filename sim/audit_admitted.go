package sim

import (
	"math"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// admittedAuditor holds what the world admits under limits with rights, or with
// homes, against what their rights sum to: L(1+b), or L where a label is
// partitioned or strict. Nothing that goes wrong excuses more, but on_failure:
// allow what it was asked to allow.
//
//	fixed_window    all admitted in a label
//	sliding_window  the weighted count at the clock of who decides; who is s
//	                behind gives the window before a weight of s/W more
//	sliding_log     the stamps of any interval as long as the window; of one that
//	                is shorter by s where homes grant them
//	buckets         (1+b)(B + rT + r step + 2rs) over any time T
//
// s is how far label clocks stood apart at most so far. While rule sets change
// the greatest limit in force anywhere counts; a rule that had no rights in one
// of them, or another grid, is left out meanwhile. So are keys that a replica
// had no room for, and said so.
//
// Under a policy without rights it counts how often the same was exceeded, which
// is then no violation.
type admittedAuditor struct {
	watcher
	policy   Policy
	promised bool
	least    int64 // how far label clocks were ahead of true time, in ms
	most     int64
	found    []*exceeded // by rule, in the order in which they came
	byRule   map[rules.ID]*exceeded
}

var _ Filler = (*admittedAuditor)(nil)

// spent is what is known of a key beside its book.
type spent struct {
	known  bool
	window int64
	oldest int // rule set that was in force somewhere when the label began
	before int // the same of the label before
	over   bool
	meter  meter // of a bucket
}

// exceeded is how often a rule admitted more than its rights sum to.
type exceeded struct {
	name    string
	windows uint64
	worst   float64 // of the total
	allowed float64 // b
}

// meter finds the worst time of a bucket: it drains at the rate that the world
// may have and fills with what is admitted, so that its level is the most by
// which any time up to now exceeds its share of the rate.
type meter struct {
	level, rate, room float64 // hits, hits a ns, hits
	at                time.Duration
}

func newAdmittedAuditor(b *books, p Policy) *admittedAuditor {
	return &admittedAuditor{
		watcher: newWatcher("admitted", b), policy: p, promised: p.hasRights(),
		least: math.MaxInt64, most: math.MinInt64, byRule: make(map[rules.ID]*exceeded),
	}
}

// Stepped follows how far clocks are apart: a step may move rights.
func (a *admittedAuditor) Stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	a.watcher.Stepped(w, d, m, err)
	for s := range d.Nodes {
		a.clock(a.books.clocks.of(d, s))
	}
}

func (a *admittedAuditor) clock(c *windowClock) {
	if c != nil && c.least <= c.most {
		a.least, a.most = min(a.least, c.ahead), max(a.most, c.ahead)
	}
}

// skew is how far label clocks stood apart at most.
func (a *admittedAuditor) skew() time.Duration {
	return time.Duration(max(0, a.most-a.least)) * time.Millisecond
}

// Decided checks an admission.
func (a *admittedAuditor) Decided(w *World, d *Decided) {
	a.watcher.Decided(w, d)
	e := &a.books.entry
	a.clock(a.books.clocks.of(d.Daemon, e.shard))
	if e.book == nil || e.page == nil || d.Rule == nil || !counted(d.Limit) || !bounded(d.Limit) || e.free > 0 {
		return
	}
	k := a.key(w, d.Limit, e)
	total, ok := a.total(w, d, k)
	if !ok || e.loses(d.Limit) && !d.Limit.Homed() || e.book.rescoped {
		return
	}
	s := a.rule(d)
	if e.admitted == 0 {
		return
	}
	used, bound := a.used(d, k, total)
	if used <= bound*(1+1e-12) {
		a.passed(1)
		return
	}
	if !k.over {
		k.over = true
		s.windows++
	}
	s.worst = max(s.worst, used/max(1, bound)-1)
	if !a.promised {
		a.passed(1)
		return
	}
	a.failed(w, "%s admitted %d hits of %s (%v) under %d: %.6g of at most %.6g; its rights sum to %.6g, clocks are %v apart",
		d.Daemon.Name, e.admitted, RuleName(d.Rule), d.Limit.Algorithm, e.page.window, used, bound, total, a.skew())
}

// key returns what is known of the key of a decision, brought up to its label.
func (a *admittedAuditor) key(w *World, l *rules.Limit, e *entry) *spent {
	k, window := &e.book.spent, e.page.window
	if !k.known { // it may have been counted without rights before, by any set so far
		*k = spent{known: true, window: math.MinInt64}
	}
	if quota.Of(l).Stamped() { // its stamps count for a window, so a label is one here
		window -= window % l.Window()
	}
	if window > k.window {
		k.window, k.before, k.oldest, k.over = window, k.oldest, oldestSet(w), false
	}
	return k
}

// oldestSet is the number of the oldest rule set in force anywhere.
func oldestSet(w *World) int {
	oldest := w.newest()
	for _, d := range w.daemons {
		if d.Up {
			oldest = min(oldest, d.set)
		}
	}
	return oldest
}

// total is the greatest sum of rights of the label under the sets that may be
// in force somewhere; false when some of them bound it otherwise.
func (a *admittedAuditor) total(w *World, d *Decided, k *spent) (total float64, ok bool) {
	from := min(k.oldest, k.before)
	if quota.Of(d.Limit).Drains() {
		from = 0
	}
	for i := from; i < len(w.sets); i++ {
		r := w.sets[i].set.Find(d.Rule.ID)
		if r == nil || r.Limit == nil || !bounded(r.Limit) || !alike(r.Limit, d.Limit) || r.Limit.Shadow {
			return 0, false
		}
		total = max(total, float64(a.totalOf(r.Limit)))
		k.meter.widen(r.Limit, a.policy)
	}
	return total, true
}

// totalOf is what all rights of a label sum to. A policy changes what regions
// and daemons hold, not what the one home of a limit has.
func (a *admittedAuditor) totalOf(l *rules.Limit) uint64 {
	if atOneOwner(l) {
		return l.Total()
	}
	return a.policy.total(l)
}

// atOneOwner reports whether all rights of a limit, or of a region's own limit, are
// granted by one daemon.
func atOneOwner(l *rules.Limit) bool {
	return l.Homed() && (l.Scope == rules.Region || !l.HomeInRegion())
}

// bounded reports whether rights bound what is admitted under a limit.
func bounded(l *rules.Limit) bool { return l.HasRights() || l.Homed() }

// alike reports whether two limits share out the same rights, but for their
// number.
func alike(a, b *rules.Limit) bool {
	return a.Grid() == b.Grid() && a.Scope == b.Scope && a.Homed() == b.Homed() &&
		(!a.Homed() || a.HomeInRegion() == b.HomeInRegion() && a.OnFailure == b.OnFailure && a.ReserveShare == b.ReserveShare)
}

// used is what of the total is used with a decision, and the most it may be.
func (a *admittedAuditor) used(d *Decided, k *spent, total float64) (used, bound float64) {
	e := &a.books.entry
	l := d.Limit
	switch {
	case quota.Of(l).Drains():
		used = k.meter.add(d.At, e.admitted)
		step := time.Duration(quota.Of(l).Step()) * time.Millisecond
		return used, k.meter.bound(step, a.skew())
	case quota.Of(l).Stamped() && l.Homed():
		return e.book.densest(e.page.window, max(0, l.Window()-a.skew().Milliseconds())), total
	case quota.Of(l).Stamped():
		return e.book.densest(e.page.window, l.Window()), total
	}
	used, bound = float64(e.page.admitted-e.page.free), total
	if prev := e.prev(l); prev != nil {
		left := float64(e.page.window + l.Window() - e.now)
		used += float64(prev.admitted-prev.free) * left / float64(l.Window())
		bound += float64(prev.admitted-prev.free) * min(1, float64(a.skew().Milliseconds())/float64(l.Window()))
	}
	return used, bound
}

// densest is the most that was admitted under stamps of an interval as long as
// the window that holds a stamp.
func (b *book) densest(stamp, window int64) float64 {
	last, _ := b.search(stamp + window)
	first := last
	sum, most := uint64(0), uint64(0)
	for i := last - 1; i >= 0 && b.pages[i].window > stamp-window; i-- {
		first = i
	}
	low := first
	for i := first; i < last; i++ {
		sum += b.pages[i].admitted - b.pages[i].free
		for b.pages[low].window <= b.pages[i].window-window {
			sum -= b.pages[low].admitted - b.pages[low].free
			low++
		}
		most = max(most, sum)
	}
	return float64(most)
}

// widen makes room for what a limit may have.
func (m *meter) widen(l *rules.Limit, p Policy) {
	if !quota.Of(l).Drains() {
		return
	}
	share := 1.0
	if (!p.plain() || atOneOwner(l)) && l.HasBudget && l.Consistency == rules.Eventual {
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

// bound is the highest that the level may be.
func (m *meter) bound(step, skew time.Duration) float64 {
	return m.room + m.rate*float64(step+2*skew)
}

// rule returns what was found of a rule.
func (a *admittedAuditor) rule(d *Decided) *exceeded {
	s := a.byRule[d.Rule.ID]
	if s == nil {
		s = &exceeded{name: RuleName(d.Rule)}
		a.byRule[d.Rule.ID] = s
		a.found = append(a.found, s)
	}
	if l := d.Limit; l.Requests > 0 {
		s.allowed = max(s.allowed, float64(a.totalOf(l))/float64(l.Requests)-1)
	}
	return s
}

// Fill says of each rule how far it went.
func (a *admittedAuditor) Fill(r *Result) {
	for _, s := range a.found {
		for i := range r.Rules {
			if row := &r.Rules[i]; row.Rule == s.name {
				row.Budget, row.Exceeded, row.ExceededWorst = s.allowed, s.windows, s.worst
			}
		}
	}
}
