package audit

import (
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// overageAuditor holds admissions against Theorem 1: when a replica admits, the
// world is over the limit by no more than the counts of others that the replica
// does not hold. The auditor reads the counts of a replica from the replica.
//
//	fixed_window    all admitted in the window; at most R'-1 limits over, R'
//	                being the processes that admitted
//	sliding_window  the weighted count at the replica's clock
//	sliding_log     the stamps in the window before the replica's clock
//	buckets         the level of one bucket of the world, which drains in true
//	                time, and the level that the replica states, or if that is less,
//	                what others charged since it could fill: since it was full, if
//	                a process started or ended since then or did not receive others,
//	                or another region lost its counts in the cell interval of then
//
// Left out are shadow rules, answers that report a lack of room, keys with an
// owner, and limits that come with calls for a rule of another scope: both
// count in one window, and only one of them is replicated. A rule that charges
// denied hits is held to what it admitted; a bucket that forgives such charges
// is left out.
type overageAuditor struct {
	finding
	rules     perRule[ruleOverage]
	overrides ruleOverage // of limits that came with calls, reported nowhere
	heard     perDirection[heard]
	// disturbed is when a process last started or ended, or first received all
	// counts of another after more than patience: the time in which the
	// fastest bucket fills.
	disturbed, patience time.Duration
	// lost is when a region last lost counts of its own, by region. Others keep
	// its former sum, which hides its next hits of that cell interval (ADR 9).
	lost []time.Duration
	near nears
}

// ruleOverage is the finding about one rule.
type ruleOverage struct {
	windows             uint64
	reached             uint64
	worst, bound        float64 // of the worst window, as ratios of the limit
	sum                 float64 // of the windows that reached the limit
	later               laterOverage
	requested, falsely  uint64 // hits; those denied without need
	stepOver, stepBound float64
}

// laterOverage is that of the windows of keys that reached the limit in a
// window before.
type laterOverage struct {
	reached    uint64
	worst, sum float64
}

func overage(a *sim.Auditor, t *truth) {
	o := &overageAuditor{
		finding: finding{a, t}, rules: newPerRule[ruleOverage](),
		disturbed: unknown, patience: math.MaxInt64,
		lost: slices.Repeat([]time.Duration{unknown}, len(t.world.Regions())), near: nears{truth: t},
	}
	t.closed = append(t.closed, o.close)
	a.Decided, a.Sample, a.Fill, a.Stepped = o.decided, o.sample, o.fill, o.stepped
	a.Restarted, a.Down = func(*sim.Daemon) { o.disturbed = t.world.Now() }, o.down
}

// heard is the state that a process received of another one: all versions up
// to contiguous, and all counts up to a time.
type heard struct {
	contiguous uint64
	until      time.Duration
}

// down notes the end of a process, and whether its region loses its counts: no
// process there that is up received them.
func (a *overageAuditor) down(d *sim.Daemon) {
	a.disturbed = a.world.Now()
	from := a.byIncarnation[d.Incarnations()[0]]
	kept := slices.ContainsFunc(a.up, func(to *process) bool {
		return to != nil && to != from && to.region == d.RegionIndex && a.holds(to, from, len(d.Nodes))
	})
	if !kept {
		a.lost[d.RegionIndex] = a.world.Now()
	}
}

// holds reports whether a process once received all counts of another one.
func (a *overageAuditor) holds(to, from *process, shards int) bool {
	for shard := range shards {
		if h := a.heard.find(direction{to.index, from.index, shard}); h == nil || h.until == 0 {
			return false
		}
	}
	return true
}

func (a *overageAuditor) stepped(d *sim.Daemon, m *gossip.Message, err error) {
	from, to, ok := a.accepted(d, m, err)
	if !ok {
		return
	}
	a.near.stepped(to, from, m)
	h := a.heard.of(direction{to.index, from.index, m.Shard})
	if m.Lo <= h.contiguous {
		h.contiguous = max(h.contiguous, m.Hi)
	}
	// Sums of keys may be for a process of the other region that ended.
	if !m.Complete || m.Hi > h.contiguous || from.region != to.region && a.countsEnded(from) {
		return
	}
	if a.silent(to, from, m.Shard) {
		a.disturbed = a.world.Now()
	}
	h.until = max(h.until, from.sentAt(m.Nonce)-m.Unsent)
}

// countsEnded reports whether a process counts another one as live that ended.
func (a *overageAuditor) countsEnded(p *process) bool {
	if !p.up {
		return true
	}
	for l := range p.daemon.Nodes[0].Links(p.daemon.Instant(a.world.Now())) {
		if o := a.byIncarnation[l.Peer.ID]; o != nil && !o.up {
			return true
		}
	}
	return false
}

// silent reports whether a process has not received the counts of another one
// for long.
func (a *overageAuditor) silent(to, from *process, shard int) bool {
	return a.world.Now()-max(a.heard.of(direction{to.index, from.index, shard}).until, to.born, from.born) > a.patience
}

// quiet reports whether no process was disturbed since a time, and no region
// but that of the deciding one lost counts less than a cell interval before.
func (a *overageAuditor) quiet(since, interval time.Duration) bool {
	for region, at := range a.lost {
		if region != a.entry.process.region && at >= since-interval-a.skew() {
			return false
		}
	}
	for _, to := range a.up {
		for _, from := range a.up {
			if to != nil && from != nil && to != from && a.silent(to, from, a.entry.shard) {
				return false
			}
		}
	}
	return a.disturbed < since
}

// decided checks an admission, and counts denials without need.
func (a *overageAuditor) decided(d *sim.Decided) {
	e, l := &a.entry, d.Limit
	if !a.checkable(d) {
		return
	}
	s := &a.overrides
	if !isOverride(d) {
		s = a.of(e.counter)
	}
	s.requested += d.Hits
	if d.Status.Over && !l.CarryDebt && e.usage.before+float64(d.Hits) <= float64(quota.Of(l).Capacity()) {
		s.falsely += d.Hits
	}
	a.near.decided(d)
	if e.admitted == 0 {
		return
	}
	a.summary(s, d).any = true
	forgiving := quota.Of(l).Drains() && l.ChargeDenied && !l.CarryDebt
	if e.uncertain(l) || forgiving || e.usage.mixed || a.homed(l) || isOverride(d) && e.counter.rescoped {
		return
	}
	if quota.Of(l).Drains() {
		a.patience = min(a.patience, max(e.counter.bucket.fill, 2*a.gossip.Interval))
	}
	limit := float64(quota.Of(l).Capacity())
	over := e.usage.admitted - limit
	if over < 0 {
		a.Pass(1)
		return
	}
	known, ok := a.disregarded(d)
	if !ok {
		return
	}
	bound := a.unheld(d) + known
	if !a.ok(over <= bound) {
		a.fail("%s admitted %d hits of %s in %d: %.6g over a limit of %.6g, and it lacks counts of %.6g",
			d.Daemon.Name, e.admitted, ruleName(d), e.window.start, over, limit, bound)
	}
	a.note(s, d, bound)
}

// of returns the finding about the rule of a counter.
func (a *overageAuditor) of(c *counter) *ruleOverage {
	if c.overage == nil {
		c.overage = a.rules.of(c.rule)
	}
	return c.overage
}

// disregarded returns how many hits of others may be in use beyond the limit
// though they are known: a daemon whose rights cover a hit admits it for any
// counts of others. Some may have had more rights in force, or have used those
// of a sliding window before it began here, or have admitted hits without any.
// It returns false where nothing bounds the hits of others: some had a limit
// without rights in force.
func (a *overageAuditor) disregarded(d *sim.Decided) (float64, bool) {
	if !d.Limit.HasRights() {
		return 0, true
	}
	e, limit := &a.entry, quota.Of(d.Limit).Capacity()
	most, early := limit, uint64(0)
	filled := e.now - e.counter.bucket.fill.Milliseconds()
	for _, w := range e.counter.windows {
		if w.end > min(filled, e.now-2*d.Limit.Window()) {
			early += w.free
		}
		others := w.limit != limit || w.rights != rightsOf(d.Limit)
		if w.end > e.now-2*d.Limit.Window() && others {
			most = max(most, w.rights)
		}
	}
	if quota.Of(d.Limit).Weighted() {
		begun := d.At - time.Duration(e.now-e.window.start)*time.Millisecond
		for i := range e.window.counts {
			if c := &e.window.counts[i]; c.process != e.process.index {
				early += before(c.steps, begun)
			}
		}
	}
	return float64(most-limit) + float64(early), most < math.MaxUint64
}

// unheld returns how many of the hits in use the deciding replica does not
// hold.
func (a *overageAuditor) unheld(d *sim.Decided) float64 {
	e, l := &a.entry, d.Limit
	x := d.Daemon.Nodes[e.shard].Explain(d.Instant, &node.Hit{Key: d.Key, Rule: d.Rule, Limit: l, N: d.Hits})
	lacks := func(w *window) uint64 { return lacking(w, e.process, d.Daemon.Region, l.Scope, x.Cells) }
	switch {
	case quota.Of(l).Drains():
		stated, others := max(0, e.usage.admitted-float64(x.Used)), e.byOthers(a.skew(), 2*a.gossip.Interval)
		_, interval, _ := intervalOf(l, e.now)
		if b := &e.counter.bucket; others < stated && !a.quiet(b.busy, time.Duration(interval)*time.Millisecond) {
			for i := range a.processes {
				if i != e.process.index {
					others += b.charged[i]
				}
			}
		}
		return min(stated, others) + 1 // for rounding
	case quota.Of(l).Stamped():
		n := uint64(0)
		for _, w := range e.counter.within(e.now, l) {
			if w.start <= e.now-l.Window()+clockSlack {
				n += w.net() // it may have left the window
			} else {
				n += lacks(w)
			}
		}
		return float64(n)
	}
	n := float64(lacks(e.window))
	if prev := e.prev(l); prev != nil {
		n += e.weight(l, lacks(prev)+letGo(prev, e, x.Cells))
	}
	if quota.Of(l).Resets() {
		admitting := 0
		for i := range e.window.counts {
			if e.window.counts[i].admitted > 0 {
				admitting++
			}
		}
		// on_failure: allow admits what the limit does not.
		n = min(n, float64(admitting-1)*float64(e.window.limit)+float64(e.window.free))
	}
	return n
}

// letGo returns how many of the hits that the deciding replica counted in the
// window before it no longer holds: a rule that does not look back has let go
// of them. It is none where every rule so far looked back.
func letGo(prev *window, e *entry, cells []gossip.Cell) uint64 {
	own := prev.count(e.process.index)
	if own == nil || prev.least > e.now {
		return 0
	}
	kept := slices.ContainsFunc(cells, func(c gossip.Cell) bool {
		return c.Window == prev.start && c.Kind == gossip.Daemon && c.Incarnation == e.process.incarnation
	})
	if kept {
		return 0
	}
	return own.net()
}

// byOthers returns the part of a bucket's level that the deciding replica may
// not know: hits of others that have not drained, or not arrived within the
// patience that is ordinary, and hits that its own clock drained too early.
func (e *entry) byOthers(skew, patience time.Duration) float64 {
	b, c := &e.counter.bucket, e.counter
	n, from := b.rate*float64(skew), e.now-(max(b.fill, patience)+skew).Milliseconds()
	for i := len(c.windows) - 1; i >= 0 && c.windows[i].end > from; i-- {
		for j := range c.windows[i].counts {
			if k := &c.windows[i].counts[j]; k.process != e.process.index {
				n += float64(k.charged)
			}
		}
	}
	return n
}

// lacking returns how much more others counted in a window than a process holds
// of them in its cells.
func lacking(w *window, by *process, region string, scope rules.Scope, cells []gossip.Cell) uint64 {
	others := w.net()
	if own := w.count(by.index); own != nil {
		others -= own.net()
	}
	if scope == rules.NodeLocal {
		return others // counts of a daemon alone die with its process
	}
	return others - min(others, heldOfOthers(w, by, region, cells).Net())
}

// heldOfOthers returns the hits of others in a window that a process holds: in
// cells of theirs or, if that is more, in the estimate of the key's aggregator.
func heldOfOthers(w *window, by *process, region string, cells []gossip.Cell) crdt.PN {
	var held, estimate crdt.Sum
	own := gossip.RegionIncarnation(region)
	for i := range cells {
		switch c := &cells[i]; {
		case c.Window != w.start || !c.Kind.Counts():
		case c.Kind == gossip.Others:
			estimate = crdt.Sum(c.Value)
		case c.Incarnation != by.incarnation && c.Incarnation != own:
			held.P, held.N = sat.Add(held.P, c.Value.P), sat.Add(held.N, c.Value.N)
		}
	}
	return crdt.PN(held.Join(estimate))
}

// summary returns that of the window of a decision. The stamps of a log are
// taken together by windows.
func (a *overageAuditor) summary(s *ruleOverage, d *sim.Decided) *summary {
	e := &a.entry
	if !quota.Of(d.Limit).Stamped() {
		return &e.window.summary
	}
	start := e.now - e.now%d.Limit.Window()
	if c := e.counter; c.logStart != start {
		s.add(c, &c.log)
		c.logStart, c.log = start, summary{}
	}
	return &e.counter.log
}

// note keeps the worst of a window.
func (a *overageAuditor) note(s *ruleOverage, d *sim.Decided, bound float64) {
	e := &a.entry
	limit := float64(e.window.limit)
	if limit == 0 {
		return
	}
	w := a.summary(s, d)
	w.reached = true
	ratio, allowed := max(0, e.usage.admitted-limit)/limit, bound/limit
	if ratio >= w.over {
		w.over, w.bound = ratio, allowed
	}
	if ratio >= s.stepOver {
		s.stepOver, s.stepBound = ratio, allowed
	}
}

// close adds a window that is over.
func (a *overageAuditor) close(c *counter, w *window) {
	if c.rule != nil {
		a.of(c).add(c, &w.summary)
	}
}

// add adds a window of a counter, in the order of their starts.
func (s *ruleOverage) add(c *counter, w *summary) {
	if !w.any {
		return
	}
	s.windows++
	if !w.reached {
		return
	}
	s.reached++
	s.sum += w.over
	if c.full {
		s.later.reached++
		s.later.sum += w.over
		s.later.worst = max(s.later.worst, w.over)
	}
	c.full = true
	if w.over > s.worst || w.over == s.worst && w.bound > s.bound {
		s.worst, s.bound = w.over, w.bound
	}
}

// sample fills in the worst of the step that ends.
func (a *overageAuditor) sample(out *sim.Series) {
	for i := range out.Rules {
		row := &out.Rules[i]
		if s := a.rules.byName[row.Rule]; s != nil && len(row.Overage) > 0 {
			row.Overage[len(row.Overage)-1], row.Bound[len(row.Bound)-1] = s.stepOver, s.stepBound
			s.stepOver, s.stepBound = 0, 0
		}
	}
}

// fill adds the windows that are left and completes the rules of a result.
func (a *overageAuditor) fill(r *sim.Result) {
	a.closeAll(a.close)
	a.near.fill(&r.Staleness)
	for i := range r.Rules {
		row := &r.Rules[i]
		s := a.rules.byName[row.Rule]
		if s == nil {
			continue
		}
		row.Windows, row.OverageRatioMax, row.Bound = s.windows, s.worst, min(s.bound, math.MaxFloat64)
		if s.reached > 0 {
			row.OverageRatioMean = s.sum / float64(s.reached)
		}
		if l := &s.later; l.reached > 0 {
			row.OverageLaterMax, row.OverageLaterMean = l.worst, l.sum/float64(l.reached)
		}
		if s.requested > 0 {
			row.FalseDenialRatio = float64(s.falsely) / float64(s.requested)
		}
	}
}
