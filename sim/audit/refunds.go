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

// charge is the charge of one descriptor that may be refunded.
type charge struct {
	process  *process
	counter  *counter
	window   int64 // start
	limit    *rules.Limit
	rule     *rules.Rule // nil for a limit of the call
	hits     uint64
	admitted uint64 // of the hits, at first
	free     uint64 // likewise
	shard    int
	used     bool // its token was sent
	unsure   bool // it may not be counted under its key
}

// refund is the latest refund with its place in the ground truth.
type refund struct {
	charge   *charge // nil for none
	again    bool    // the token was used before
	admitted uint64  // of the refunded hits
}

// keepTokens is the number of charges from which on those that are over are
// dropped.
const keepTokens = 1 << 16

// charge notes a charge that may be refunded.
func (t *truth) charge(d *sim.Decided) {
	e := &t.entry
	if d.Token == 0 || e.window == nil || e.process == nil {
		return
	}
	if len(t.tokens) >= keepTokens {
		t.sweepTokens(t.slowest())
	}
	t.tokens[d.Token] = &charge{
		process: e.process, counter: e.counter, window: e.window.start, limit: d.Limit, shard: e.shard,
		hits: e.charged, admitted: e.admitted, free: e.free, unsure: e.counter.unsure,
	}
	if isOverride(d) {
		own := *d.Limit // it is the call's, which is used again
		t.tokens[d.Token].limit = &own
	} else {
		t.tokens[d.Token].rule = d.Rule
	}
}

func (t *truth) sweepTokens(slowest int64) {
	for number, c := range t.tokens {
		if refundEnd(c.limit, c.window)+keepWindows < slowest {
			delete(t.tokens, number)
		}
	}
}

// refundEnd returns from when on hits of a window cannot be refunded, in Unix
// ms: while the window stands, and for another one where they weigh or are owed
// in it.
func refundEnd(l *rules.Limit, start int64) int64 {
	_, length, _ := intervalOf(l, start)
	switch {
	case quota.Of(l).Stamped():
		return start + l.Window()
	case quota.Of(l).Weighted(), l.CarryDebt && !quota.Of(l).Drains():
		return start + 2*length
	}
	return start + length
}

// refunded enters a refund: the counts of its window fall by the refunded hits.
func (t *truth) refunded(_ *sim.Daemon, token, _ uint64, done node.Refunded) {
	c := t.tokens[token]
	t.refund = refund{charge: c}
	if c == nil {
		return
	}
	r := &t.refund
	r.again, c.used = c.used, true
	w := c.counter.window(c.window)
	if w == nil || done.Hits == 0 {
		return
	}
	k := w.count(c.process.index)
	hits := min(done.Hits, k.net())
	r.admitted = min(hits, c.admitted)
	free := min(hits, c.free)
	c.admitted, c.free = c.admitted-r.admitted, c.free-free
	w.refunded, w.admitted, w.free = w.refunded+hits, w.admitted-r.admitted, w.free-free
	k.refunded, k.admitted, k.free = k.refunded+hits, k.admitted-r.admitted, k.free-min(free, k.free)
	now := t.world.Now()
	k.backs = append(k.backs, step{now, k.refunded})
	c.counter.back(now, hits)
}

// back takes refunded hits out of the bucket of a counter and notes them.
func (c *counter) back(now time.Duration, hits uint64) {
	b := &c.bucket
	b.level = max(0, b.level-b.rate*float64(now-b.at)-float64(hits))
	b.at = now
	sum := hits
	if n := len(c.refunds); n > 0 {
		sum += c.refunds[n-1].sum
	}
	c.refunds = append(c.refunds, step{now, sum})
}

// unrefunded returns the most that the replica of the latest decision may count
// although it was refunded: elsewhere, or from a bucket that it held to be
// fuller or emptier than it was.
func (a *finding) unrefunded(d *sim.Decided) float64 {
	e, l := &a.entry, d.Limit
	all := e.counter.refunds
	if len(all) == 0 {
		return 0
	}
	if quota.Of(l).Drains() {
		length := time.Duration(0)
		if _, ms, _ := intervalOf(l, e.now); ms > 0 {
			length = time.Duration(ms) * time.Millisecond
		}
		since := d.At - e.counter.bucket.fill - 2*length - time.Minute
		return float64(all[len(all)-1].sum - before(all, since))
	}
	x := d.Daemon.Nodes[e.shard].Explain(d.Instant, &node.Hit{Key: d.Key, Rule: d.Rule, Limit: l, N: d.Hits})
	lacks := func(w *window) float64 { return float64(lackingRefunds(w, e.process, d.Daemon.Region, x.Cells)) }
	sum := 0.0
	switch {
	case quota.Of(l).Stamped():
		for _, w := range e.counter.within(e.now, l) {
			sum += lacks(w)
		}
		return sum
	case e.window != nil:
		sum = lacks(e.window)
	}
	if prev := e.prev(l); prev != nil {
		sum += math.Ceil(lacks(prev))
	}
	return sum
}

// lackingRefunds returns how much more others refunded in a window than a
// process holds of them in its cells.
func lackingRefunds(w *window, by *process, region string, cells []gossip.Cell) uint64 {
	others := w.refunded
	if own := w.count(by.index); own != nil {
		others -= own.refunded
	}
	return others - min(others, heldOfOthers(w, by, region, cells).N)
}

// refundAuditor checks that refunds conserve hits. A token gives back at most
// the hits that it was issued for, once, at the process that charged them, and
// only while they count. Then it gives back all that is asked for. The effect
// on counts is checked by the auditors of counts: the ground truth falls by
// what the answer states, in the window of the charge.
type refundAuditor struct{ finding }

func refunds(a *sim.Auditor, t *truth) {
	a.Refunded = (&refundAuditor{finding{a, t}}).refunded
}

func (a *refundAuditor) refunded(d *sim.Daemon, token, asked uint64, done node.Refunded) {
	c := a.refund.charge
	if c == nil {
		return // it was over long ago, and must not count
	}
	end, known := a.end(d, c)
	if !known {
		return
	}
	clock := d.Nodes[c.shard].Millis(d.Instant(a.world.Now()))
	again := a.refund.again
	if done.Hits > 0 {
		a.check(!again && a.up[d.Index] == c.process && done.Hits <= min(asked, c.hits) && clock < end && !done.Expired,
			"%s refunded %d of %d hits of token %d at %d (again: %v); %s charged %d, which count until %d",
			d.Name, done.Hits, asked, token, clock, again, c.process.name(), c.hits, end)
		return
	}
	if again || c.unsure || c.counter.unsure {
		a.Pass(1)
		return
	}
	// Hits are dropped when a window ended without a debt, as far as the daemon
	// knew, which knew its own hits. Those of a key that counts at its daemon
	// alone are dropped when a bucket has drained.
	_, length, _ := intervalOf(c.limit, c.window)
	over, w := c.limit.CarryDebt && clock >= c.window+length, c.counter.window(c.window)
	dropped := over && (w == nil || w.count(c.process.index).net() <= w.limit)
	if c.limit.Scope == rules.NodeLocal {
		dropped = over || quota.Of(c.limit).Drains()
	}
	a.check(clock >= end || c.counter.rescoped || dropped, "%s refunded nothing of %d hits of token %d at %d (expired: %v), which count until %d",
		d.Name, c.hits, token, clock, done.Expired, end)
}

// end returns from when on a daemon cannot refund a charge, in Unix ms: by the
// limit that the rule has there now, and at once where it is gone or counts on
// another grid. It is not known for a bucket of another rate, whose steps are
// others.
func (a *refundAuditor) end(d *sim.Daemon, c *charge) (end int64, known bool) {
	l := c.limit
	if c.rule != nil {
		r := a.world.Sets()[d.Set].Find(c.rule.ID)
		if r == nil || r.Limit == nil || r.Limit.Unlimited || r.Limit.Grid() != l.Grid() {
			return math.MinInt64, true
		}
		if quota.Of(l).Drains() && (l.Requests != r.Limit.Requests || l.Burst != r.Limit.Burst) {
			return 0, false
		}
		l = r.Limit
	}
	return refundEnd(l, c.window), true
}

// ruleName returns the name of the rule of a decision, also for a limit that
// came with a call that no rule matches.
func ruleName(d *sim.Decided) string {
	if d.Rule == nil {
		return "a limit of the call"
	}
	return sim.RuleName(d.Rule)
}
