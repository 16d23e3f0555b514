package sim

import (
	"math"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// overageAuditor holds what the world admits against Theorem 1: when a replica
// makes an admission, no more is over the limit than others counted that it
// could not know of yet. What it knew follows from the messages it had taken.
//
//	fixed_window    all admitted in the label; at most R'-1 limits over, R'
//	                being the replicas that admitted
//	sliding_window  the weighted count at the instant of the replica's clock
//	sliding_log     the stamps in the window before that instant
//	buckets         what is in use of one bucket of the world, which drains in
//	                true time; a replica's clock that gained g since it started
//	                refilled its bucket by rate x g more
//
// Windows and stamps are those of who counted, so that clocks that differ need
// no allowance but in buckets. Hits that a replica refused to take, because
// their label was too far ahead of its clock, count as unknown to it. Left out
// are shadow rules, which refuse nothing, overrides, and what was answered as
// degraded for want of room, and what homes decide. A quota counts when it is not over. Rules that
// charge what they refuse are held to what they admitted; in buckets that
// forgive such charges they are left out.
type overageAuditor struct {
	watcher
	byRule map[rules.ID]*ruleOverage
	rules  []*ruleOverage // in the order in which they came
}

var (
	_ Filler  = (*overageAuditor)(nil)
	_ Sampler = (*overageAuditor)(nil)
)

// ruleOverage is what was found of one rule.
type ruleOverage struct {
	name           string
	windows        uint64
	reached        uint64
	worst, bound   float64 // of the worst label
	sum            float64 // of the labels that reached the limit
	asked, falsely uint64  // hits; of those refused without need

	stepOver, stepBound float64
}

func newOverageAuditor(b *books) *overageAuditor {
	a := &overageAuditor{
		watcher: newWatcher("overage", b), byRule: make(map[rules.ID]*ruleOverage),
	}
	b.ledger.closed = a.close
	return a
}

func (a *overageAuditor) rule(r *rules.Rule) *ruleOverage {
	s := a.byRule[r.ID]
	if s == nil {
		s = &ruleOverage{name: RuleName(r)}
		a.byRule[r.ID] = s
		a.rules = append(a.rules, s)
	}
	return s
}

// Decided checks an admission, and counts refusals that were not needed.
func (a *overageAuditor) Decided(w *World, d *Decided) {
	a.watcher.Decided(w, d)
	e := &a.books.entry
	if e.book == nil || !counted(d.Limit) || d.Rule == nil {
		return
	}
	s := a.rule(d.Rule)
	s.asked += d.Hits
	if d.Status.Over && !d.Limit.CarryDebt && e.usage.before+float64(d.Hits) <= float64(capacity(d.Limit)) {
		s.falsely += d.Hits
	}
	if e.admitted == 0 {
		return
	}
	a.window(s, d).any = true
	if !a.excused(d) {
		a.admitted(w, d, s)
	}
}

// excused reports whether nothing can be said of an admission.
func (a *overageAuditor) excused(d *Decided) bool {
	l, e := d.Limit, &a.books.entry
	forgiving := quota.Of(l).Drains() && l.ChargeDenied && !l.CarryDebt
	return e.loses(l) || a.books.hearing.noRoom || forgiving || e.usage.mixed || a.books.homed(l)
}

func (a *overageAuditor) admitted(w *World, d *Decided, s *ruleOverage) {
	e := &a.books.entry
	limit := float64(capacity(d.Limit))
	over := e.usage.admitted - limit
	if over < 0 {
		a.passed(1)
		return
	}
	bound := a.bound(w, d)
	if over > bound {
		a.failed(w, "%s admitted %d hits of %s under %d: %.6g over a limit of %.6g, while all it could not know of is %.6g",
			d.Daemon.Name, e.admitted, s.name, e.page.window, over, limit, bound)
	} else {
		a.passed(1)
	}
	a.note(s, d, bound)
}

// bound is what Theorem 1 allows to be over at an admission, in hits.
func (a *overageAuditor) bound(w *World, d *Decided) float64 {
	e := &a.books.entry
	known := a.books.known(w, e.writer, e.shard)
	from := a.books.hearing.heldBackAny(d.Key)
	if from != unheard && quota.Of(d.Limit).Resets() {
		from = a.books.hearing.heldBack(d.Key, e.page.window)
	}
	if d.Limit.Scope == rules.NodeLocal { // a daemon's own counts die with its process
		from = never
	}
	known = known.since(from, e.writer.index)
	unseen := a.books.unseen(d, known)
	if quota.Of(d.Limit).Resets() {
		writers := 0
		for i := range e.page.incarnations {
			if e.page.incarnations[i].admitted > 0 {
				writers++
			}
		}
		unseen = min(unseen, float64(writers-1)*float64(e.page.limit))
	}
	return unseen
}

// window returns what was found of the label of a decision. A log has none: its
// hits are told apart by windows.
func (a *overageAuditor) window(s *ruleOverage, d *Decided) *totals {
	e := &a.books.entry
	if !quota.Of(d.Limit).Stamped() {
		return &e.page.totals
	}
	window := e.now - e.now%d.Limit.Window()
	if b := e.book; b.window != window {
		a.closeTotals(s, &b.totals)
		b.window, b.totals = window, totals{}
	}
	return &e.book.totals
}

// note keeps the worst of a label.
func (a *overageAuditor) note(s *ruleOverage, d *Decided, bound float64) {
	e := &a.books.entry
	limit := float64(e.page.limit)
	if limit == 0 {
		return
	}
	t := a.window(s, d)
	t.reached = true
	ratio, allowed := max(0, e.usage.admitted-limit)/limit, bound/limit
	if ratio >= t.over {
		t.over, t.bound = ratio, allowed
	}
	if ratio >= s.stepOver {
		s.stepOver, s.stepBound = ratio, allowed
	}
}

// close takes in a label that is over.
func (a *overageAuditor) close(b *book, t *totals) {
	if b.rule != nil {
		a.closeTotals(a.rule(b.rule), t)
	}
}

func (a *overageAuditor) closeTotals(s *ruleOverage, t *totals) {
	if !t.any {
		return
	}
	s.windows++
	if !t.reached {
		return
	}
	s.reached++
	s.sum += t.over
	if t.over > s.worst || t.over == s.worst && t.bound > s.bound {
		s.worst, s.bound = t.over, t.bound
	}
}

// Sample fills in the worst of the step that ends.
func (a *overageAuditor) Sample(out *Series) {
	for _, s := range a.rules {
		for i := range out.Rules {
			if row := &out.Rules[i]; row.Rule == s.name && len(row.Overage) > 0 {
				row.Overage[len(row.Overage)-1], row.Bound[len(row.Bound)-1] = s.stepOver, s.stepBound
			}
		}
		s.stepOver, s.stepBound = 0, 0
	}
}

// Fill closes the labels that are left and fills in what was found.
func (a *overageAuditor) Fill(r *Result) {
	for _, b := range a.books.ledger.all {
		for _, p := range b.pages {
			a.close(b, &p.totals)
		}
		a.close(b, &b.totals)
	}
	for _, s := range a.rules {
		for i := range r.Rules {
			if row := &r.Rules[i]; row.Rule == s.name {
				s.fill(row)
			}
		}
	}
}

func (s *ruleOverage) fill(row *RuleResult) {
	row.Windows, row.OverageRatioMax, row.Bound = s.windows, s.worst, s.bound
	if s.reached > 0 {
		row.OverageRatioMean = s.sum / float64(s.reached)
	}
	if s.asked > 0 {
		row.FalseDenialRatio = float64(s.falsely) / float64(s.asked)
	}
	if math.IsInf(row.Bound, 0) {
		row.Bound = math.MaxFloat64
	}
}
