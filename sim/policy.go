package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/node"
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
