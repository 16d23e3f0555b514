package node

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// countsPlainly reports whether hits of a rule need its counter alone: a fixed
// window without debt, rights or an owner.
func countsPlainly(r *rules.Rule) bool {
	l := r.Limit
	return l != nil && !l.Unlimited && quota.Of(l).Resets() && !l.CarryDebt && !l.HasRights() && !l.Homed()
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
	if now >= end || e.Expires() <= now || e.Rule != rule || rule < 0 || e.Extra >= 0 || e.Inherited() || e.Cell.Carry != 0 {
		return false
	}
	elsewhere, left := uint64(0), uint64(0)
	shared := n.replica != nil && replicated(h.Limit)
	if shared {
		if n.replica.degraded() != NotDegraded {
			return false
		}
		elsewhere, left = n.elsewhere(h, &e.Cell, ref{where: inLive, entry: e})
	}
	limit := uint64(h.Limit.Requests)
	taken := sat.Add(sat.Add(sat.Add(e.Cell.Count, elsewhere), left), h.N)
	if taken > limit {
		return false
	}
	e.Cell.Count += h.N
	n.keys.keep(e, end)
	n.top.unsampled--
	st.Remaining, st.Reset = limit-taken, duration(end-now)
	if n.replica != nil {
		n.busiest.charged(n.rules.set, e, h.Limit, now, now)
		if shared {
			st.probed.ref = ref{where: inLive, entry: e}
			st.probed.room = limit - (taken - left)
			n.share(h, now, st)
		}
	}
	c.Decision = Decision{Allowed: true, Refused: -1}
	st.decided = decided{charge: true, passed: true}
	t := &n.stats.tallies[rule]
	if st.Degraded != NotDegraded { // by share
		n.stats.degraded[st.Degraded]++
	}
	t.Offer(h.N)
	t.Allowed++
	t.Fitted(h.Limit, st.Remaining, h.N, n.stats.near)
	return true
}
