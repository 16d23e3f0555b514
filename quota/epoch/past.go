package epoch

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/georld/rld/internal/sat"
)

// maxPast bounds the pruned epochs that are kept. Beyond it, neighbors are
// merged into one that gives the lesser amounts of both.
const maxPast = 32

// Past holds the owner's amounts of one pruned epoch, or of several.
type Past struct {
	From   int64 // the first window it was settled for
	Counts int64 // the first window in which it counts, at most From
	Until  int64 // the last window that enough others had extended the horizon to

	Amount uint64
	// Weight of Total is the owner's part where amounts are weights.
	Weight, Total uint64
	Rules         []PastRule // ascending
}

// PastRule is the owner's amount of a rule with its own shares.
type PastRule struct {
	Rule   uint64
	Amount uint32
}

// maxPastRules bounds the rules of one Past.
const maxPastRules = maxPast * MaxRules

// validate returns an error if the amounts are malformed.
func (p *Past) validate() error {
	switch {
	case p.From == never:
		return errors.New("pruned epoch that is not settled: want it settled")
	case p.Total == 0 || p.Weight > p.Total:
		return fmt.Errorf("pruned epoch with weight %d of %d: want a part of the total", p.Weight, p.Total)
	case len(p.Rules) > maxPastRules:
		return fmt.Errorf("pruned epoch with %d rules: want at most %d", len(p.Rules), maxPastRules)
	}
	for i := 1; i < len(p.Rules); i++ {
		if p.Rules[i-1].Rule >= p.Rules[i].Rule {
			return fmt.Errorf("pruned epoch with rules %016x, %016x: want them ascending, each once",
				p.Rules[i-1].Rule, p.Rules[i].Rule)
		}
	}
	return nil
}

// keepPast keeps the owner's amounts of epochs that are about to be dropped.
// Epochs that were not settled only decrease amounts: they belong to the one
// below.
func (t *Table) keepPast(dropped []entry) {
	kept := slices.Clone(t.past)
	for i := range dropped {
		e := &dropped[i]
		p := t.pastOf(e)
		if p.Counts == never {
			continue // it counted in no window
		}
		if e.from == never {
			p.From = kept[len(kept)-1].From // the first of dropped was settled
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
func gap(kept []Past, i int) int64 {
	if kept[i].From == always {
		return never
	}
	return kept[i+1].From - kept[i].From
}

// pastOf returns the owner's amounts of an epoch.
func (t *Table) pastOf(e *entry) Past {
	p := Past{From: e.from, Counts: t.countsFrom(e), Until: t.extendedUntil(e)}
	k, ok := e.rank(t.owner)
	if !ok {
		p.Total = 1
		return p
	}
	p.Amount, p.Weight, p.Total = e.Members[k].Amount, e.Members[k].Amount, max(e.Total(), 1)
	for _, r := range e.Rules {
		p.Rules = append(p.Rules, PastRule{r.Rule, r.Shares[k]})
	}
	return p
}

// merged returns the lesser amounts of two neighbors, for the windows of both.
func merged(a, b Past) Past {
	m := Past{
		From: a.From, Counts: min(a.Counts, b.Counts), Until: min(a.Until, b.Until),
		Amount: min(a.Amount, b.Amount), Weight: a.Weight, Total: a.Total,
	}
	hiA, loA := bits.Mul64(a.Weight, b.Total)
	hiB, loB := bits.Mul64(b.Weight, a.Total)
	if hiB < hiA || hiB == hiA && loB < loA {
		m.Weight, m.Total = b.Weight, b.Total
	}
	for _, rules := range [][]PastRule{a.Rules, b.Rules} {
		for _, r := range rules {
			i, ok := slices.BinarySearchFunc(m.Rules, r.Rule, comparePastRule)
			if !ok {
				least := min(a.amountOf(r.Rule), b.amountOf(r.Rule))
				m.Rules = slices.Insert(m.Rules, i, PastRule{r.Rule, uint32(least)})
			}
		}
	}
	return m
}

func comparePastRule(r PastRule, rule uint64) int { return cmp.Compare(r.Rule, rule) }

// amountOf returns the owner's amount of a rule, in parts per million.
func (p *Past) amountOf(rule uint64) uint64 {
	if i, ok := slices.BinarySearchFunc(p.Rules, rule, comparePastRule); ok {
		return uint64(p.Rules[i].Amount)
	}
	return min(p.Amount, Whole)
}

// split returns the owner's part of amount, rounded down.
func (p *Past) split(amount uint64) uint64 {
	return sat.MulDiv(amount, p.Weight, p.Total)
}

// pastPlace returns the place of the latest pruned epoch that was settled for
// x: -1 for the first pruned, -2 for the second, and so on; 0 for none.
func (t *Table) pastPlace(x int64) int {
	for i := len(t.past) - 1; i >= 0; i-- {
		if t.past[i].From <= x {
			// Unsettled epochs have the first window of the one below.
			for i > 0 && t.past[i-1].From == t.past[i].From {
				i--
			}
			return -1 - i
		}
	}
	return 0
}

// pastFrom returns the pruned epochs from a place on, none for a place among
// the entries.
func (t *Table) pastFrom(lo int) []Past {
	if lo >= 0 {
		return nil
	}
	return t.past[-1-lo:]
}

// pastExtended reports whether enough others had extended the owner's horizon
// to the window under all pruned epochs from a place on.
func (t *Table) pastExtended(lo int, x int64) bool {
	return !slices.ContainsFunc(t.pastFrom(lo), func(p Past) bool { return p.Counts <= x && p.Until < x })
}
