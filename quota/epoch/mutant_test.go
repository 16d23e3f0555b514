package epoch

import (
	"slices"

	"github.com/georld/rld/internal/sat"
)

// mutant is a broken rule of Table. The functions below give a table the
// results that it would have with the broken rule, beside the real code.
type mutant uint8

const (
	mutantNoInherit   mutant = 1 << iota // the first window of the predecessor is not inherited
	mutantLowestOnly                     // extensions are checked under the settled epoch only
	mutantEasyReclaim                    // the acknowledgement of one member is enough to reclaim a share
	mutantNoReports                      // epochs listed by acknowledgements are ignored
	mutantEasyUse                        // the own extension is enough
)

// resettle settles the epochs of a table by the broken rule.
func resettle(t *Table, broken mutant) {
	if broken&(mutantNoInherit|mutantEasyReclaim|mutantNoReports) == 0 {
		return
	}
	for i := 1; i < len(t.entries); i++ {
		e := &t.entries[i]
		if from := brokenFrom(t, e, broken); from < e.from {
			e.from = from
			if p, ok := t.find(e.Pred); ok {
				e.hold(t.entries[p].held)
			}
		}
	}
}

// brokenFrom is Table.settledFrom with a broken rule.
func brokenFrom(t *Table, e *entry, broken mutant) int64 {
	p, ok := t.find(e.Pred)
	if !ok || t.entries[p].from == never {
		return never
	}
	from := t.entries[p].from
	if broken&mutantNoInherit != 0 {
		from = always
	}
	for _, m := range e.Members {
		a, ok := e.ack(m.ID)
		if !ok {
			return never
		}
		from = max(from, a.From)
	}
	from = max(from, brokenCovered(e, &t.entries[p], broken))
	if broken&mutantNoReports != 0 {
		return from
	}
	for _, a := range e.acks {
		for _, id := range a.Before {
			f, ok := t.find(id)
			if !ok {
				return never
			}
			from = max(from, brokenCovered(e, &t.entries[f], broken))
		}
	}
	return from
}

// brokenCovered is covered with a broken rule.
func brokenCovered(e, older *entry, broken mutant) int64 {
	if broken&mutantEasyReclaim == 0 || len(older.Members) <= 2 {
		return covered(e, older)
	}
	from := int64(always)
	for _, left := range older.Members {
		if e.Has(left.ID) {
			continue
		}
		first := int64(never)
		for _, m := range older.Members {
			if a, ok := e.ack(m.ID); ok && m.ID == left.ID {
				first = min(first, a.From)
			} else if ok {
				first = min(first, sat.AddInt(a.horizon(left.ID), 1)) // one is enough
			}
		}
		if dead, ok := e.retired(left.ID); ok {
			first = min(first, dead)
		}
		from = max(from, first)
	}
	return from
}

// usable returns the table that answers for the broken rule.
func usable(t *Table, x, carry int64, broken mutant) *Table {
	_, reason := t.lowest(x, carry)
	if reason != ReasonAlone || broken&(mutantEasyUse|mutantLowestOnly) == 0 {
		return t
	}
	c := t.clone()
	c.extensions = nil
	for i := range t.entries {
		for _, m := range t.entries[i].Members {
			if !slices.ContainsFunc(c.extensions, func(g Extension) bool { return g.By == m.ID }) && m.ID != t.owner {
				c.extensions = append(c.extensions, Extension{By: m.ID, To: t.owner, Until: never})
			}
		}
	}
	lo, _ := c.lowest(x, carry)
	if broken&mutantLowestOnly != 0 && t.extendedUntil(&t.entries[max(lo, 0)]) < x {
		return t
	}
	return c
}

// unchain removes the dependencies that settled epochs inherited.
func unchain(t *Table) {
	for i := 1; i < len(t.entries); i++ {
		e := &t.entries[i]
		e.held = nil
		for _, a := range e.acks {
			e.hold(a.Held)
		}
	}
}
