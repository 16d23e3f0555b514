package epoch

import (
	"cmp"
	"math/bits"
	"slices"
)

// maxPast bounds what is kept of pruned epochs. Beyond it, neighbors become
// one that gives the less of both.
const maxPast = 32

// past is what one pruned epoch, or several, gave to the owner.
type past struct {
	from  int64 // the first label it was settled for
	until int64 // the last label that enough others had granted

	amount uint64
	// weight of total is the owner's part where amounts are weights.
	weight, total uint64
	rows          []pastRow // ascending by rule
}

type pastRow struct {
	rule   uint64
	amount uint32
}

// keepPast keeps what epochs that are to be dropped gave to the owner. Those
// that were not settled only take: they belong to the one below.
func (t *Table) keepPast(dropped []entry) {
	kept := slices.Clone(t.past)
	for i := range dropped {
		e := &dropped[i]
		p := t.pastOf(e)
		if e.from == never {
			p.from = kept[len(kept)-1].from // the first that is dropped was settled
		}
		kept = append(kept, p)
	}
	for len(kept) > maxPast {
		best := 0
		for i := range len(kept) - 2 { // the nearest neighbors, but not the latest
			if gap(kept, i) < gap(kept, best) {
				best = i
			}
		}
		kept[best] = merged(kept[best], kept[best+1])
		kept = slices.Delete(kept, best+1, best+2)
	}
	t.past = kept
}

// gap returns how far two neighbors are apart.
func gap(kept []past, i int) int64 {
	if kept[i].from == always {
		return never
	}
	return kept[i+1].from - kept[i].from
}

// pastOf returns what an epoch gives to the owner.
func (t *Table) pastOf(e *entry) past {
	p := past{from: e.from, until: t.grantedUntil(e)}
	k, ok := e.rank(t.owner)
	if !ok {
		p.total = 1
		return p
	}
	p.amount, p.weight, p.total = e.Members[k].Amount, e.Members[k].Amount, max(e.Total(), 1)
	for _, r := range e.Rules {
		p.rows = append(p.rows, pastRow{r.Rule, r.Shares[k]})
	}
	return p
}

// merged returns the less of two neighbors, for the labels of both.
func merged(a, b past) past {
	m := past{
		from: a.from, until: min(a.until, b.until),
		amount: min(a.amount, b.amount), weight: a.weight, total: a.total,
	}
	hiA, loA := bits.Mul64(a.weight, b.total)
	hiB, loB := bits.Mul64(b.weight, a.total)
	if hiB < hiA || hiB == hiA && loB < loA {
		m.weight, m.total = b.weight, b.total
	}
	for _, rows := range [][]pastRow{a.rows, b.rows} {
		for _, r := range rows {
			i, ok := slices.BinarySearchFunc(m.rows, r.rule, compareRow)
			if !ok {
				least := min(a.amountOf(r.rule), b.amountOf(r.rule))
				m.rows = slices.Insert(m.rows, i, pastRow{r.rule, uint32(least)})
			}
		}
	}
	return m
}

func compareRow(r pastRow, rule uint64) int { return cmp.Compare(r.rule, rule) }

// amountOf returns what the owner had of a rule, in parts per million.
func (p *past) amountOf(rule uint64) uint64 {
	if i, ok := slices.BinarySearchFunc(p.rows, rule, compareRow); ok {
		return uint64(p.rows[i].amount)
	}
	return min(p.amount, Whole)
}

// split returns the owner's part of amount, rounded down.
func (p *past) split(amount uint64) uint64 {
	hi, lo := bits.Mul64(amount, p.weight)
	part, _ := bits.Div64(hi, lo, p.total) // weight <= total, so it fits, unless equal
	return part
}

// grantedUntil returns the last label that enough others have granted under
// the epoch.
func (t *Table) grantedUntil(e *entry) int64 {
	need := e.grantsNeeded() - 1 // its own aside
	if need <= 0 {
		return never
	}
	var ends []int64
	for _, g := range t.grants {
		if !e.ID.Before(g.Under) && e.Has(g.By) {
			ends = append(ends, g.Until)
		}
	}
	if len(ends) < need {
		return always
	}
	slices.Sort(ends)
	return ends[len(ends)-need]
}

// pastPlace returns the place of what was settled last for x among the pruned:
// -1 for the first, -2 for the second, and so on; 0 where none was.
func (t *Table) pastPlace(x int64) int {
	for i := len(t.past) - 1; i >= 0; i-- {
		if t.past[i].from <= x {
			// Those that were not settled have the first label of the one below.
			for i > 0 && t.past[i-1].from == t.past[i].from {
				i--
			}
			return -1 - i
		}
	}
	return 0
}

// pastFrom returns how many pruned there are from a place on; none for a place
// among the entries.
func (t *Table) pastFrom(lo int) int {
	if lo >= 0 {
		return 0
	}
	return len(t.past) + 1 + lo
}

// pastAt returns the pruned i places above lo.
func (t *Table) pastAt(lo, i int) *past { return &t.past[i-1-lo] }

// pastGranted reports whether enough others had granted the label under all
// pruned from a place on.
func (t *Table) pastGranted(lo int, x int64) bool {
	for i := range t.pastFrom(lo) {
		if t.pastAt(lo, i).until < x {
			return false
		}
	}
	return true
}
