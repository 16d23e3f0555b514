package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/node"
	epochs "github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
)

// Policy is the mechanism that holds the limits with rights, so that runs of
// one kind can stand side by side. Other limits are not affected.
type Policy uint8

// The policies.
const (
	// Budgeted is the rules as they are written: both gates, rights that sum
	// to L(1+b), or to L for a partitioned limit, and transfers.
	Budgeted Policy = iota
	// Naive has neither rights nor extrapolation: merged counts decide.
	Naive
	// Extrapolated has the estimate gate alone.
	Extrapolated
	// Capped has both gates and no transfers: a share is a cap.
	Capped
	// Partitioned has rights that sum to L, and transfers.
	Partitioned
	// Static has equal shares of L: no transfers, and nothing is rebalanced.
	Static

	policyKinds = iota
)

var policyNames = []string{"budgeted", "naive", "extrapolated", "cap", "partition", "static"}

// String returns the word that scenarios use.
func (p Policy) String() string { return enum.Name(p, policyNames...) }

// Policies lists all policies.
func Policies() []Policy { return enum.All[Policy](policyKinds) }

// PolicyNamed returns the policy of a word, and an error that lists all of
// them for one that is none.
func PolicyNamed(word string) (Policy, error) {
	p := slices.Index(policyNames, word)
	if p < 0 {
		return 0, fmt.Errorf("policy %q: want %s", word, strings.Join(policyNames, ", "))
	}
	return Policy(p), nil
}

// hasRights reports whether a gate of rights decides under the policy.
func (p Policy) HasRights() bool { return p != Naive && p != Extrapolated }

// gates are those that do not decide under the policy.
func (p Policy) gates() node.Ablation {
	return node.Ablation{NoRights: !p.HasRights(), NoTransfers: p == Capped || p == Static}
}

// plain reports whether rights sum to the bare limit, whatever its budget.
func (p Policy) Plain() bool { return p == Partitioned || p == Static }

// rebalances reports whether shares follow demand.
func (p Policy) rebalances() bool { return p.HasRights() && p != Static }

// Total is what all rights of one window of a limit sum to. Without rights it
// is the limit with its budget.
func (p Policy) Total(l *rules.Limit) uint64 {
	if p.Plain() {
		return uint64(l.Requests)
	}
	return l.Total()
}

// portion returns the part of an amount that the policy gives out: all of it,
// or the limit's part without the budget. It is exact where the amount is a
// limit with its budget, rounded down.
func (p Policy) portion(amount uint64, l *rules.Limit) uint64 {
	if !p.Plain() || !l.HasBudget || l.Consistency != rules.Eventual {
		return amount
	}
	return sat.MulDivUp(amount, uint64(rules.Whole), uint64(rules.Whole)+uint64(l.Budget))
}

// sets are the rule sets of a run.
func (c *Config) sets() []*rules.Set {
	sets := []*rules.Set{c.Rules}
	for i := range c.Faults {
		if c.Faults[i].Rules != nil {
			sets = append(sets, c.Faults[i].Rules)
		}
	}
	return sets
}

// anyRights reports whether some rule of some set of the run has rights.
func (c *Config) HasRights() bool { return c.anyLimit((*rules.Limit).HasRights) }

// anyLimit reports whether a condition holds for a limit of any set of the run.
func (c *Config) anyLimit(holds func(*rules.Limit) bool) bool {
	return slices.ContainsFunc(c.sets(), func(set *rules.Set) bool {
		return slices.ContainsFunc(set.Rules(), func(r *rules.Rule) bool { return r.Limit != nil && holds(r.Limit) })
	})
}

// recordAllotments are those of the agent that a daemon has: none before the
// founding, and another one for each generation of its region.
type recordAllotments struct{ d *Daemon }

// Version implements node.Allotments.
func (r *recordAllotments) Version() uint64 {
	if r.d.agent == nil {
		return r.d.follows.ended
	}
	return r.d.follows.ended + 1 + r.d.agent.Agent.Version()
}

// Allotment implements node.Allotments.
func (r *recordAllotments) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
	if r.d.agent == nil {
		return 0, epochs.ReasonNoCluster
	}
	return r.d.agent.Agent.Allotment(rule, total, x, carry, regional)
}

// Former implements node.Allotments.
func (r *recordAllotments) Former(rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
	if r.d.agent == nil {
		return 0, epochs.ReasonNoCluster
	}
	return r.d.agent.Agent.Former(rule, total, x, carry, regional)
}

// PartOf implements node.Allotments.
func (r *recordAllotments) PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64 {
	if r.d.agent == nil {
		return 0
	}
	return r.d.agent.Agent.PartOf(peer, rule, total, x, carry, regional)
}

// RegionPart implements node.Allotments.
func (r *recordAllotments) RegionPart(region string, rule, total uint64, x, carry int64) uint64 {
	if r.d.agent == nil {
		return 0
	}
	return r.d.agent.Agent.RegionPart(region, rule, total, x, carry)
}

// RegionMost is part of node.Allotments.
func (r *recordAllotments) RegionMost(region string, rule, total uint64, x, carry int64) uint64 {
	if r.d.agent == nil {
		return 0
	}
	return r.d.agent.Agent.RegionMost(region, rule, total, x, carry)
}

// RegionAllotment implements node.Allotments.
func (r *recordAllotments) RegionAllotment(rule, total uint64, x, carry int64) (uint64, epochs.Reason) {
	if r.d.agent == nil {
		return 0, epochs.ReasonNoCluster
	}
	return r.d.agent.Agent.RegionAllotment(rule, total, x, carry)
}

// tappedAllotments answers as a daemon's rights agent does, out of the total
// that the policy gives out, and reports the answers to the auditors.
type tappedAllotments struct {
	node.Allotments
	world  *World
	daemon *Daemon
}

// Allotment implements node.Allotments.
func (t *tappedAllotments) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
	total = t.world.portion(rule, total)
	amount, why := t.Allotments.Allotment(rule, total, x, carry, regional)
	t.allotted(rule, total, x, regional, amount)
	return amount, why
}

// Former implements node.Allotments.
func (t *tappedAllotments) Former(rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
	total = t.world.portion(rule, total)
	amount, why := t.Allotments.Former(rule, total, x, carry, regional)
	t.allotted(rule, total, x, regional, amount)
	return amount, why
}

// allotted reports an allotment to the auditors.
func (t *tappedAllotments) allotted(rule, total uint64, x int64, regional bool, amount uint64) {
	region := -1
	if regional {
		region = t.daemon.RegionIndex
	}
	t.world.auditors.allotted(&Allotted{
		Daemon: t.daemon, Holder: t.daemon.Chain(), Rule: rule, Window: x, Region: region, Total: total, Amount: amount,
	})
}

// PartOf implements node.Allotments.
func (t *tappedAllotments) PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64 {
	return t.Allotments.PartOf(peer, rule, t.world.portion(rule, total), x, carry, regional)
}

// RegionPart implements node.Allotments.
func (t *tappedAllotments) RegionPart(region string, rule, total uint64, x, carry int64) uint64 {
	return t.Allotments.RegionPart(region, rule, t.world.portion(rule, total), x, carry)
}

// RegionMost is part of node.Allotments.
func (t *tappedAllotments) RegionMost(region string, rule, total uint64, x, carry int64) uint64 {
	return t.Allotments.RegionMost(region, rule, t.world.portion(rule, total), x, carry)
}

// RegionAllotment implements node.Allotments.
func (t *tappedAllotments) RegionAllotment(rule, total uint64, x, carry int64) (uint64, epochs.Reason) {
	total = t.world.portion(rule, total)
	amount, why := t.Allotments.RegionAllotment(rule, total, x, carry)
	t.world.auditors.allotted(&Allotted{
		Daemon: t.daemon, Holder: generationOf(t.daemon), Rule: rule, Window: x, Region: t.daemon.RegionIndex,
		ByRegion: true, Total: total, Amount: amount,
	})
	return amount, why
}

// portion returns the part of a total that the policy of the run gives out. The
// total is that of a rule set that some daemon still has.
func (w *World) portion(rule, total uint64) uint64 {
	if !w.cfg.Policy.Plain() {
		return total
	}
	var newest *rules.Limit
	for i := w.newest(); i >= 0; i-- {
		r := w.sets[i].set.FindShared(rule)
		if r == nil {
			continue
		}
		if r.Limit.Total() == total || r.Limit.TotalBurst() == total {
			return w.cfg.Policy.portion(total, r.Limit)
		}
		newest = cmp.Or(newest, r.Limit)
	}
	if newest == nil {
		return total
	}
	return w.cfg.Policy.portion(total, newest)
}
