package node

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
)

// countsPlainly reports whether hits of a rule need its counter alone, and
// rights if it has some: a fixed window without debt or an owner.
func countsPlainly(r *rules.Rule) bool {
	l := r.Limit
	return l != nil && !l.Unlimited && quota.Of(l).Resets() && !l.CarryDebt && !l.Homed()
}

// Admit decides and charges a resolved call in one pass, if it is one that
// most are: one descriptor of a rule that counts plainly, of a key of this node
// in a running window, and it is admitted. It returns false for every other
// call and has charged nothing: Probe, Decide and Charge have the same result
// for all calls.
//
// A pass reads the entry of the key once. So it takes the time in which a
// processor waits for that, and not a multiple of it.
func Admit(n *Node, at Instant, c *Call) bool {
	if len(c.hits) != 1 || len(c.Receipts) > 0 {
		return false
	}
	h, st := &c.hits[0], &c.Statuses[0]
	now := n.millis(at)
	// The hit after this one may be sampled, as Charge does.
	if !h.plain || h.Peek || h.N == 0 || n.top.unsampled <= 1 || !n.keys.owns(h.Key) {
		return false
	}
	e := n.keys.live.Find(h.Key)
	if e == nil {
		return false
	}
	rule, end := n.rules.index(h.Rule), e.Cell.Window+h.Limit.Window()
	if now >= end || e.Expires() <= now || e.Rule != rule || rule < 0 || e.Inherited() || e.Cell.Carry != 0 {
		return false
	}
	if n.replica != nil && !probeShared(n, h, st, e) {
		return false
	}
	limit, taken := uint64(h.Limit.Requests), sat.Add(sat.Add(e.Cell.Count, st.probed.elsewhere), h.N)
	if taken > limit || st.probed.bounded && !n.allow(h, st, e.Cell.Count, now) {
		return false
	}
	e.Cell.Count += h.N
	n.keys.keep(e, end)
	n.top.unsampled--
	st.Remaining, st.Reset = limit-taken, duration(end-now)
	st.decided = decided{charge: true, passed: true}
	c.Decision = Decision{Allowed: true, Refused: -1}
	if e.Extra >= 0 {
		n.spend(h, now, st)
	}
	if n.replica != nil {
		chargeShared(n, h, st, e, now)
	}
	t := &n.stats.tallies[rule]
	if st.Degraded != NotDegraded { // by share
		n.stats.degraded[st.Degraded]++
	}
	t.Offer(h.N)
	t.Allowed++
	t.Fitted(h.Limit, st.Remaining, h.N, n.stats.near)
	return true
}

// probeShared is the part of Admit that a node with a region has before the
// decision. It returns false if the answer would be less than exact.
func probeShared(n *Node, h *Hit, st *Status, e *keytable.Entry) bool {
	st.probed.ref, st.probed.bounded = ref{where: inLive, entry: e}, n.bounded(h)
	if !replicated(h.Limit) {
		return true
	}
	if n.replica.degraded() != NotDegraded {
		return false
	}
	st.probed.elsewhere, st.probed.left = n.elsewhere(h, &e.Cell, st.probed.ref)
	st.probed.elsewhere += st.probed.left
	return true
}

// chargeShared is the part of Admit that a node with a region has after the
// charge.
func chargeShared(n *Node, h *Hit, st *Status, e *keytable.Entry, now int64) {
	n.busiest.charged(n.rules.set, e, h.Limit, now, now)
	st.probed.room = st.Remaining + st.probed.elsewhere
	if st.probed.bounded {
		n.reportRights(h, now, st)
	}
	n.share(h, now, st)
	if st.probed.account != nil {
		n.offer(h, st.probed.account, now, sat.Add(e.Cell.Count, st.probed.elsewhere))
	}
}
