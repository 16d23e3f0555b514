package epoch

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/georld/rld/internal/sat"
)

const (
	// Whole is a rule's total where amounts are parts per million.
	Whole = 1_000_000
	// MaxRules bounds the rules with own shares of one epoch.
	MaxRules = 4_096
	// MaxAmounts bounds the shares of all rules of one epoch.
	MaxAmounts = 1 << 17
)

// RuleShares holds the shares of one rule, in parts per million of its total. A
// rule without own shares is shared by the amounts of Members.
type RuleShares struct {
	Rule uint64
	// Shares are parallel to Members and sum to at most Whole.
	Shares []uint32
}

func (r RuleShares) equal(o RuleShares) bool {
	return r.Rule == o.Rule && slices.Equal(r.Shares, o.Shares)
}

// validateRules checks the shares of rules. sum is that of the members'
// amounts.
func (e Epoch) validateRules(sum uint64) error {
	if len(e.Rules) == 0 {
		return nil
	}
	if len(e.Rules) > MaxRules || len(e.Rules)*len(e.Members) > MaxAmounts {
		return fmt.Errorf("%d rules of %d shares: want at most %d rules and %d shares",
			len(e.Rules), len(e.Members), MaxRules, MaxAmounts)
	}
	if sum > Whole {
		return fmt.Errorf("amounts sum to %d beside shares of rules: want at most %d", sum, Whole)
	}
	for i, r := range e.Rules {
		if i > 0 && e.Rules[i-1].Rule >= r.Rule {
			return fmt.Errorf("shares of rules %016x, %016x: want them ascending, each once",
				e.Rules[i-1].Rule, r.Rule)
		}
		if len(r.Shares) != len(e.Members) {
			return fmt.Errorf("rule %016x: %d shares for %d members: want one each",
				r.Rule, len(r.Shares), len(e.Members))
		}
		total := uint64(0)
		for _, a := range r.Shares {
			total += uint64(a)
		}
		if total > Whole {
			return fmt.Errorf("rule %016x: shares sum to %d: want at most %d", r.Rule, total, Whole)
		}
	}
	return nil
}

// SharesOf returns the shares of a rule, parallel to Members. It returns ok
// false if the rule has no own shares.
func (e *Epoch) SharesOf(rule uint64) (shares []uint32, ok bool) {
	i, ok := slices.BinarySearchFunc(e.Rules, rule, func(r RuleShares, rule uint64) int {
		return cmp.Compare(r.Rule, rule)
	})
	if !ok {
		return nil, false
	}
	return e.Rules[i].Shares, true
}

// AmountOf returns the participant's amount of the rule under this epoch alone,
// 0 if it is no member.
func (e *Epoch) AmountOf(rule, id uint64) uint64 {
	k, ok := e.rank(id)
	if !ok {
		return 0
	}
	if shares, ok := e.SharesOf(rule); ok {
		return uint64(shares[k])
	}
	return e.Members[k].Amount
}

// Believed returns the part of total that a participant holds as far as this
// table knows; the participant itself may know better. Use it to choose a donor
// of rights, not to use rights.
func (t *Table) Believed(rule, id, total uint64, x, carry int64) uint64 {
	least := uint64(Whole)
	for i := max(t.settledBy(earlier(x, carry)), 0); i < len(t.entries); i++ {
		if e := &t.entries[i]; t.regional || e.bindsIn(id, x) {
			least = min(least, e.AmountOf(rule, id))
		}
	}
	return sat.MulDiv(total, least, Whole)
}

// Most returns the most that a participant may hold of total, as far as this
// table knows, where Believed returns the least. Use it to reject claims, not
// to use rights.
func (t *Table) Most(rule, id, total uint64, x, carry int64) uint64 {
	lo, most := t.settledBy(earlier(x, carry)), uint64(0)
	if lo < 0 {
		return total // an epoch that was pruned counts
	}
	for i := lo; i < len(t.entries); i++ {
		most = max(most, t.entries[i].AmountOf(rule, id))
	}
	return sat.MulDivUp(total, most, Whole)
}

// BelievedPart is Believed for a table with weights: see Part.
func (t *Table) BelievedPart(id, amount uint64, x, carry int64) uint64 {
	least := amount
	for i := max(t.settledBy(earlier(x, carry)), 0); i < len(t.entries); i++ {
		if e := &t.entries[i]; e.bindsIn(id, x) {
			least = min(least, e.Split(amount, id))
		}
	}
	return least
}

// bindsIn reports whether the epoch is settled for the windows that start at x,
// or a participant acknowledged it for them.
func (e *entry) bindsIn(id uint64, x int64) bool {
	if e.from <= x {
		return true
	}
	a, ok := e.ack(id)
	return ok && a.From <= x
}

// settledBy returns the place of the greatest epoch settled for x, or -1 where
// that one was pruned.
func (t *Table) settledBy(x int64) int {
	lo := len(t.entries) - 1
	for lo >= 0 && t.entries[lo].from > x {
		lo--
	}
	return lo
}
