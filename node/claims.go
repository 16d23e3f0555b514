package node

import (
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// A peer may send any counts and transfers. Where rights exist, they bound what
// a claim can do here. All rights to a window sum to the limit with its budget,
// so what this daemon holds is held by no other: others can have admitted no
// more than the rest, and can transfer no more. Claims beyond that are false,
// or late.

// rightsCount reports whether rights bound the hits that count under a rule, of
// all daemons: not if it counts denied hits, keeps debts or was lowered since
// hits count, nor of a bucket with a budget, whose rights refill faster than
// its limit.
func rightsCount(n *Node, r *rules.Rule, now int64) bool {
	l := r.Limit
	if l.ChargeDenied || l.CarryDebt || l.Shadow || quota.Of(l).Drains() && l.Budget > 0 {
		return false
	}
	i := n.rules.index(r)
	if i < 0 || int(i) >= len(n.rules.lowered) {
		return false
	}
	x, carry := quota.Of(l).RightsWindow(now)
	return n.rules.lowered[i] == 0 || n.rules.lowered[i] <= x-carry
}

// surplus returns how many hits all rights exceed the limit by.
func surplus(l *rules.Limit) uint64 {
	f := quota.Of(l)
	return sat.Sub(f.Hits(f.AllRights().Amount), f.Capacity())
}

// covered reports whether hits that the rights of this daemon cover fit the
// limit for any counts of others: no other daemon holds its unused rights.
func covered(n *Node, h *Hit, st *Status, now int64) bool {
	need := sat.Add(st.probed.ahead, h.N)
	return sat.Add(need, surplus(h.Limit)) <= st.probed.rights && rightsCount(n, h.Rule, now)
}

// plausible reports whether a peer may have made a transfer. This daemon cannot
// hold more than all rights. The daemons of another region cannot have given
// more than the share of their region and what this region gave away.
func plausible(n *Node, c *gossip.ClaimedTransfer) bool {
	rule := n.rules.set.FindShared(c.Rule)
	if rule == nil || rule.Limit == nil || !n.bounded(&Hit{Rule: rule, Limit: rule.Limit}) || !transferable(&n.cfg, rule.Limit) {
		return false
	}
	l := rule.Limit
	x, carry := quota.Of(l).RightsWindow(n.now)
	own := uint64(0)
	if x == c.Window {
		own = n.gate.allotment(&n.rules, rule, n.now).Amount
	}
	if c.Received > sat.Add(sat.Sub(l.Total(), own), c.Given) {
		return false
	}
	if c.From.Region == n.cfg.Region {
		return true
	}
	share := n.cfg.Allotments.RegionMost(c.From.Region, rule.Shared(), l.Total(), c.Window, carry)
	return c.OfRegion <= sat.Add(share, c.RegionGave)
}

// believable returns an estimate of a key's hits that counts no more hits of
// other regions than these can hold: all rights but those of this region.
// Otherwise the sum of one region would keep daemons from requesting rights.
func believable(n *Node, c *transferCall, estimate uint64) uint64 {
	l := c.hit.Limit
	total := l.Total()
	if 2*estimate < uint64(l.Requests) || l.Scope == rules.Region || !rightsCount(n, c.hit.Rule, n.now) {
		return estimate
	}
	sums := uint64(0)
	for _, r := range c.in.View.Regions() {
		sums = sat.Add(sums, r.Used)
	}
	if sums == 0 {
		return estimate
	}
	if sums > total {
		n.replica.engine.Report(gossip.Event{At: n.at.Mono, Kind: gossip.SumExceeded, Amount: 1})
	}
	moved := gossip.RegionRights(n.replica.engine, c.hit.Key, c.in.Window)
	most := sat.Sub(sat.Add(total, moved.Given), sat.Add(c.in.View.Allotment(n.cfg.Region), moved.Received))
	return sat.Sub(estimate, sat.Sub(sums, min(most, total)))
}

// lowerings returns when the rules of the next set had greater limits last.
func (s *ruleset) lowerings(next *rules.Set, now int64) []int64 {
	all := make([]int64, len(next.Rules()))
	for i, r := range next.Rules() {
		was := s.set.Find(r.ID)
		if was == nil || was.Limit == nil || r.Limit == nil {
			continue
		}
		if at := int(s.index(was)); at < len(s.lowered) {
			all[i] = s.lowered[at]
		}
		if sameGrid(was.Limit, r.Limit) && (was.Limit.Total() > r.Limit.Total() || was.Limit.TotalBurst() > r.Limit.TotalBurst() || !was.Limit.HasRights()) {
			all[i] = now
		}
	}
	return all
}
