package agent

import (
	"cmp"
	"slices"

	"github.com/georld/rld/quota/epoch"
)

// shareCache keeps the greatest allotments of the latest windows of each rule.
type shareCache struct {
	rules []Rule // by ID
	kept  []keptShares
}

// keptShares are the allotments of one rule. A bucket has two totals, and two
// windows are current around a border.
type keptShares [4]keptShare

// keptShare is one allotment; its total is 0 for none.
type keptShare struct {
	x, carry         int64
	total, allotment uint64
	regional         bool
}

// setRules sets the rules and keeps the allotments of those that remain.
func (c *shareCache) setRules(rules []Rule) {
	kept := make([]keptShares, len(rules))
	for i := range rules {
		if j, ok := c.index(rules[i].ID); ok {
			kept[i] = c.kept[j]
		}
	}
	c.rules, c.kept = rules, kept
}

// keep returns the greatest allotment of the window: this one or a former one.
// The sum over all daemons of their greatest allotments is bounded like that of
// the allotments at any time. A former allotment remains valid after its epochs
// were pruned, but not if an epoch leaves this daemon or its region out: an
// entry of the control log may state that it uses nothing any more.
func (c *shareCache) keep(rule uint64, s keptShare, reason epoch.Reason) (uint64, epoch.Reason) {
	i, ok := c.index(rule)
	if !ok || reason != epoch.ReasonEpoch && reason != epoch.ReasonUnsettled {
		return s.allotment, reason
	}
	kept, oldest := &c.kept[i], 0
	for j := range kept {
		k := &kept[j]
		if k.x == s.x && k.carry == s.carry && k.total == s.total && k.regional == s.regional {
			if k.total > 0 && (reason == epoch.ReasonUnsettled || k.allotment > s.allotment) {
				return k.allotment, epoch.ReasonEpoch
			}
			k.allotment = s.allotment
			return s.allotment, reason
		}
		if k.x < kept[oldest].x {
			oldest = j
		}
	}
	if reason == epoch.ReasonEpoch && s.x >= kept[oldest].x {
		kept[oldest] = s
	}
	return s.allotment, reason
}

// index returns the place of a rule, and whether it is there.
func (c *shareCache) index(id uint64) (int, bool) {
	return slices.BinarySearchFunc(c.rules, id, func(r Rule, id uint64) int { return cmp.Compare(r.ID, id) })
}

// Allotment returns the part of a rule's total that this daemon holds in the
// window that starts at x (Unix milliseconds), and the reason for it. carry is
// how far the rule's algorithm reaches back from there, in milliseconds, not
// negative. With regional, the total is that of this region alone.
//
// The result for a window may increase and decrease, and the greatest may be
// kept. Allotment itself keeps it for the latest windows of each rule: the
// rights at the start of a long window remain. Allotment allocates nothing.
func (a *Agent) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	return allotment(a, rule, total, x, carry, regional, (*epoch.Table).Part, epoch.DaemonShare)
}

// Former is Allotment for a caller that counts the use by the former runs of
// this daemon as its own: see Start.Accounts and epoch.FormerPart. It is for
// the windows of rules that have windows of their own.
func (a *Agent) Former(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	return allotment(a, rule, total, x, carry, regional, (*epoch.Table).FormerPart, epoch.FormerDaemonShare)
}

func allotment(a *Agent, rule, total uint64, x, carry int64, regional bool,
	part func(t *epoch.Table, amount uint64, x, carry int64) (uint64, epoch.Reason),
	share func(region, local *epoch.Table, rule, total uint64, x, carry int64) (uint64, epoch.Reason),
) (uint64, epoch.Reason) {
	var allotment uint64
	reason, barred := a.barred()
	switch {
	case barred:
	case regional:
		allotment, reason = part(a.local, total, x, carry)
	default:
		allotment, reason = share(a.region, a.local, rule, total, x, carry)
	}
	allotment, reason = a.cache.keep(rule, keptShare{x, carry, total, allotment, regional}, reason)
	if reason != epoch.ReasonEpoch {
		a.blocked = true
	}
	return allotment, reason
}

// RegionAllotment returns the part of a rule's total that this region holds as
// a whole in the window that starts at x: Allotment splits it among the
// daemons. The owner of a key in the region may keep the greatest result for a
// window.
func (a *Agent) RegionAllotment(rule, total uint64, x, carry int64) (uint64, epoch.Reason) {
	if reason, barred := a.barred(); barred {
		return 0, reason
	}
	allotment, reason := epoch.RegionShare(a.region, a.local, rule, total, x, carry)
	if reason != epoch.ReasonEpoch {
		a.blocked = true
	}
	return allotment, reason
}

// Version changes whenever a result of Allotment may have changed.
func (a *Agent) Version() uint64 { return a.version }

// PartOf returns the estimated allotment of another daemon of the region. Use
// it to choose a donor of rights, not to use rights.
func (a *Agent) PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64 {
	if !regional {
		total = a.region.Believed(rule, a.cfg.Generation, total, x, carry)
	}
	return a.local.BelievedPart(a.names.daemon(peer), total, x, carry)
}

// RegionPart returns the estimated allotment of a region, this one or another.
func (a *Agent) RegionPart(region string, rule, total uint64, x, carry int64) uint64 {
	i := a.regions.index(region)
	if i < 0 {
		return 0
	}
	return a.region.Believed(rule, a.regions.all[i].ID, total, x, carry)
}

// RegionMost returns the most that a region may hold of a rule's total, this
// one or another.
func (a *Agent) RegionMost(region string, rule, total uint64, x, carry int64) uint64 {
	i := a.regions.index(region)
	if i < 0 {
		return 0
	}
	return a.region.Most(rule, a.regions.all[i].ID, total, x, carry)
}

// unblock notes that allotments of 0 may have changed.
func unblock(a *Agent) {
	if a.blocked {
		a.blocked = false
		a.version++
	}
}
