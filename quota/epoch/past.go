package epoch

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/georld/rld/internal/sat"
)

// maxPast bounds the pruned epochs that are kept. Beyond it, neighbors are
// merged into one that gives the lesser amounts of both.
const maxPast = 32

// past holds the owner's amounts of one pruned epoch, or of several.
type past struct {
	from   int64 // the first window it was settled for
	counts int64 // the first window in which it counts, at most from
	until  int64 // the last window that enough others had extended the horizon to

	amount uint64
	// weight of total is the owner's part where amounts are weights.
	weight, total uint64
	rules         []pastRule // ascending
}

// pastRule is the owner's amount of a rule with its own shares.
type pastRule struct {
	rule   uint64
	amount uint32
}

// keepPast keeps the owner's amounts of epochs that are about to be dropped.
// Epochs that were not settled only decrease amounts: they belong to the one
// below.
func (t *Table) keepPast(dropped []entry) {
	kept := slices.Clone(t.past)
	for i := range dropped {
		e := &dropped[i]
		p := t.pastOf(e)
		if p.counts == never {
			continue // it counted in no window
		}
		if e.from == never {
			p.from = kept[len(kept)-1].from // the first of dropped was settled
		}
		kept = append(kept, p)
	}
	for len(kept) > maxPast {
		best := 0
		for i := range len(kept) - 2 { // the closest neighbors, but not the latest
			if gap(kept, i) < gap(kept, best) {
				best = i
			}
		}
		kept[best] = merged(kept[best], kept[best+1])
		kept = slices.Delete(kept, best+1, best+2)
	}
	t.past = kept
}

// gap returns the distance between two neighbors.
func gap(kept []past, i int) int64 {
	if kept[i].from == always {
		return never
	}
	return kept[i+1].from - kept[i].from
}

// pastOf returns the owner's amounts of an epoch.
func (t *Table) pastOf(e *entry) past {
	p := past{from: e.from, counts: t.countsFrom(e), until: t.extendedUntil(e)}
	k, ok := e.rank(t.owner)
	if !ok {
		p.total = 1
		return p
	}
	p.amount, p.weight, p.total = e.Members[k].Amount, e.Members[k].Amount, max(e.Total(), 1)
	for _, r := range e.Rules {
		p.rules = append(p.rules, pastRule{r.Rule, r.Shares[k]})
	}
	return p
}

// merged returns the lesser amounts of two neighbors, for the windows of both.
func merged(a, b past) past {
	m := past{
		from: a.from, counts: min(a.counts, b.counts), until: min(a.until, b.until),
		amount: min(a.amount, b.amount), weight: a.weight, total: a.total,
	}
	hiA, loA := bits.Mul64(a.weight, b.total)
	hiB, loB := bits.Mul64(b.weight, a.total)
	if hiB < hiA || hiB == hiA && loB < loA {
		m.weight, m.total = b.weight, b.total
	}
	for _, rules := range [][]pastRule{a.rules, b.rules} {
		for _, r := range rules {
			i, ok := slices.BinarySearchFunc(m.rules, r.rule, comparePastRule)
			if !ok {
				least := min(a.amountOf(r.rule), b.amountOf(r.rule))
				m.rules = slices.Insert(m.rules, i, pastRule{r.rule, uint32(least)})
			}
		}
	}
	return m
}

func comparePastRule(r pastRule, rule uint64) int { return cmp.Compare(r.rule, rule) }

// amountOf returns the owner's amount of a rule, in parts per million.
func (p *past) amountOf(rule uint64) uint64 {
	if i, ok := slices.BinarySearchFunc(p.rules, rule, comparePastRule); ok {
		return uint64(p.rules[i].amount)
	}
	return min(p.amount, Whole)
}

// split returns the owner's part of amount, rounded down.
func (p *past) split(amount uint64) uint64 {
	return sat.MulDiv(amount, p.weight, p.total)
}

// pastPlace returns the place of the latest pruned epoch that was settled for
// x: -1 for the first pruned, -2 for the second, and so on; 0 for none.
func (t *Table) pastPlace(x int64) int {
	for i := len(t.past) - 1; i >= 0; i-- {
		if t.past[i].from <= x {
			// Unsettled epochs have the first window of the one below.
			for i > 0 && t.past[i-1].from == t.past[i].from {
				i--
			}
			return -1 - i
		}
	}
	return 0
}

// pastFrom returns the pruned epochs from a place on, none for a place among
// the entries.
func (t *Table) pastFrom(lo int) []past {
	if lo >= 0 {
		return nil
	}
	return t.past[-1-lo:]
}

// pastExtended reports whether enough others had extended the owner's horizon
// to the window under all pruned epochs from a place on.
func (t *Table) pastExtended(lo int, x int64) bool {
	return !slices.ContainsFunc(t.pastFrom(lo), func(p past) bool { return p.counts <= x && p.until < x })
}
