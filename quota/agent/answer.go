package agent

import (
	"cmp"
	"slices"

	"github.com/georld/rld/quota/epoch"
)

// answers are the greatest ones given for the latest labels of a rule. Two
// totals are asked for of a bucket, and two labels are alive around a border.
type answers [4]answer

// answer is one that was given; its total is 0 for none.
type answer struct {
	x, carry    int64
	total, base uint64
	regional    bool
}

// keep returns the greatest answer for the label: this one or one before. The
// sum over all daemons of their greatest answers is bound like that of their
// answers at any time. What was answered before holds also when the epochs it
// came from are forgotten; but no longer when an epoch leaves this daemon or its
// region out, as an operator may have said that it uses nothing any more.
func (o *Agent) keep(rule uint64, a answer, why epoch.Reason) (uint64, epoch.Reason) {
	i, ok := o.ruleIndex(rule)
	if !ok || why != epoch.ReasonEpoch && why != epoch.ReasonUnsettled {
		return a.base, why
	}
	kept, oldest := &o.kept[i], 0
	for j := range kept {
		k := &kept[j]
		if k.x == a.x && k.carry == a.carry && k.total == a.total && k.regional == a.regional {
			if k.total > 0 && (why == epoch.ReasonUnsettled || k.base > a.base) {
				return k.base, epoch.ReasonEpoch
			}
			k.base = a.base
			return a.base, why
		}
		if k.x < kept[oldest].x {
			oldest = j
		}
	}
	if why == epoch.ReasonEpoch && a.x >= kept[oldest].x {
		kept[oldest] = a
	}
	return a.base, why
}

// ruleIndex returns the place of a rule, and whether it is there.
func (o *Agent) ruleIndex(id uint64) (int, bool) {
	return slices.BinarySearchFunc(o.rules, id, func(r Rule, id uint64) int { return cmp.Compare(r.ID, id) })
}
