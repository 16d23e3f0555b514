package epoch

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

const (
	// Whole is all of a rule's total where amounts are parts per million.
	Whole = 1_000_000
	// MaxRules bounds the rows of one epoch.
	MaxRules = 4_096
	// MaxAmounts bounds the amounts of all rows of one epoch.
	MaxAmounts = 1 << 17
)

// SharesOf says how one rule is shared: who has which part of its total, in parts
// per million. A rule without a row is shared as Members says.
type RuleShares struct {
	Rule uint64
	// Shares are parallel to Members and sum to at most Whole.
	Shares []uint32
}

func (r RuleShares) equal(o RuleShares) bool {
	return r.Rule == o.Rule && slices.Equal(r.Shares, o.Shares)
}

// validateRows checks the rows; sum is that of the members' amounts.
func (e Epoch) validateRows(sum uint64) error {
	if len(e.Rules) == 0 {
		return nil
	}
	if len(e.Rules) > MaxRules || len(e.Rules)*len(e.Members) > MaxAmounts {
		return fmt.Errorf("%d rows of %d amounts: want at most %d rows and %d amounts",
			len(e.Rules), len(e.Members), MaxRules, MaxAmounts)
	}
	if sum > Whole {
		return fmt.Errorf("amounts sum to %d beside rows: want at most %d", sum, Whole)
	}
	for i, r := range e.Rules {
		if i > 0 && e.Rules[i-1].Rule >= r.Rule {
			return fmt.Errorf("rows of rules %016x, %016x: want them ascending, each once",
				e.Rules[i-1].Rule, r.Rule)
		}
		if len(r.Shares) != len(e.Members) {
			return fmt.Errorf("row of rule %016x: %d amounts for %d members: want one each",
				r.Rule, len(r.Shares), len(e.Members))
		}
		total := uint64(0)
		for _, a := range r.Shares {
			total += uint64(a)
		}
		if total > Whole {
			return fmt.Errorf("row of rule %016x: amounts sum to %d: want at most %d", r.Rule, total, Whole)
		}
	}
	return nil
}

// SharesOf returns the amounts of a rule, parallel to Members, and whether the
// epoch has a row for it.
func (e *Epoch) SharesOf(rule uint64) ([]uint32, bool) {
	i, ok := slices.BinarySearchFunc(e.Rules, rule, func(r RuleShares, rule uint64) int {
		return cmp.Compare(r.Rule, rule)
	})
	if !ok {
		return nil, false
	}
	return e.Rules[i].Shares, true
}

// AmountOf returns what the participant holds of the rule under this epoch
// alone; 0 when it is not named.
func (e *Epoch) AmountOf(rule, id uint64) uint64 {
	k, ok := e.rank(id)
	if !ok {
		return 0
	}
	if row, ok := e.SharesOf(rule); ok {
		return uint64(row[k])
	}
	return e.Members[k].Amount
}

// ShareOf is Share for one rule: the owner's part of its total, in parts per
// million. It allocates nothing.
func (t *Table) ShareOf(rule uint64, x, carry int64) (uint64, Reason) {
	lo, why := t.lowest(x, carry)
	if why != ReasonEpoch {
		return 0, why
	}
	least := uint64(Whole)
	for i := range t.pastFrom(lo) {
		least = min(least, t.pastAt(lo, i).amountOf(rule))
	}
	for i := max(lo, 0); i < len(t.entries); i++ {
		least = min(least, t.entries[i].AmountOf(rule, t.owner))
	}
	return least, ReasonEpoch
}

// partPPM returns floor(total * ppm / Whole). ppm is at most Whole.
func partPPM(total, ppm uint64) uint64 {
	hi, lo := bits.Mul64(total, ppm)
	part, _ := bits.Div64(hi, lo, Whole) // ppm <= Whole, so it fits
	return part
}

// DaemonShare is Base where the amounts of the region's table are parts per million
// of a rule's total: the daemon's part, by local, of its region's part of
// total. Daemons that pass different totals hold together at most the greatest
// of them. It allocates nothing.
func DaemonShare(region, local *Table, key, rule, total uint64, x, carry int64) (uint64, Reason) {
	share, why := RegionShare(region, local, key, rule, total, x, carry)
	if why != ReasonEpoch {
		return 0, why
	}
	lo, _ := local.lowest(x, carry)
	return local.partOf(share, lo), ReasonEpoch
}

// RegionShare is what DaemonShare splits: the part of total that the region holds as a
// whole, for those of its daemons that use it as one. It is safe to use for the
// same reasons: the daemon has learned what its region acknowledged.
func RegionShare(region, local *Table, key, rule, total uint64, x, carry int64) (uint64, Reason) {
	ppm, why := region.ShareOf(rule, x, carry)
	if why != ReasonEpoch {
		return 0, why
	}
	lo, why := local.lowest(x, carry)
	if why != ReasonEpoch {
		return 0, why
	}
	if !region.keeps(local.entries[max(lo, 0)].held, key) {
		return 0, ReasonUnlearned
	}
	return partPPM(total, ppm), ReasonEpoch
}

// Believed returns the part of total that a participant holds as far as the
// table knows, which may be more or less than that participant itself knows.
// It is for those who ask others for rights, not for those who use them.
func (t *Table) Believed(rule, id, total uint64, x, carry int64) uint64 {
	least := uint64(Whole)
	for i := t.settledBy(earlier(x, carry)); i < len(t.entries); i++ {
		least = min(least, t.entries[i].AmountOf(rule, id))
	}
	return partPPM(total, least)
}

// BelievedPart is Believed where amounts are weights: see Part.
func (t *Table) BelievedPart(id, amount uint64, x, carry int64) uint64 {
	least := amount
	for i := t.settledBy(earlier(x, carry)); i < len(t.entries); i++ {
		least = min(least, t.entries[i].Split(amount, id))
	}
	return least
}

// settledBy returns the place of the greatest epoch settled for x, the first
// where that was pruned.
func (t *Table) settledBy(x int64) int {
	lo := len(t.entries) - 1
	for lo > 0 && t.entries[lo].from > x {
		lo--
	}
	return max(lo, 0)
}
