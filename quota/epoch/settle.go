package epoch

import (
	"slices"

	"github.com/georld/rld/internal/sat"
)

// settle checks the epochs again, lowest first, since each needs its
// predecessor. A settled one may be settled for earlier windows: a participant
// whose horizon it waited for returned and acknowledged it.
func (t *Table) settle() {
	for i := range t.entries {
		e := &t.entries[i]
		if from := t.settledFrom(e); from < e.from {
			e.from = from
			t.revision++
			// The predecessor may have admitted members of e that had not
			// learned its dependencies when they acknowledged e.
			if p, ok := t.find(e.Pred); ok && t.entries[p].ID != e.ID {
				e.hold(t.entries[p].held)
			}
		}
	}
}

// settledFrom returns the first window that e is settled for, never for none.
// e is settled for the windows for which
//   - its predecessor is settled,
//   - all its members have acknowledged it, and
//   - no other participant can use an older epoch: see covered. Older epochs
//     are the predecessor, and all epochs that an acknowledging participant had
//     acknowledged before, since these may be settled elsewhere.
func (t *Table) settledFrom(e *entry) int64 {
	p, ok := t.find(e.Pred)
	if !ok || t.entries[p].from == never {
		return never
	}
	from := t.entries[p].from
	for _, m := range e.Members {
		a, ok := e.ack(m.ID)
		if !ok {
			return never
		}
		from = max(from, a.From)
	}
	from = max(from, covered(e, &t.entries[p]))
	for _, a := range e.acks {
		for _, id := range a.Before {
			f, ok := t.find(id)
			if from == never || !ok {
				return never
			}
			from = max(from, covered(e, &t.entries[f]))
		}
	}
	return from
}

// covered returns the first window from which every member of the older epoch
// that uses its rights respects e. A member has acknowledged e; or it is
// outside e, and either e retires it, or too few members of the older
// epoch are left to extend its horizon.
func covered(e, older *entry) int64 {
	from := int64(always)
	for _, k := range older.Members {
		if !e.Has(k.ID) { // settledFrom checks its acknowledgement
			from = max(from, coveredOf(e, older, k.ID))
		}
	}
	return from
}

// coveredOf is covered for one member of the older epoch that is outside e.
func coveredOf(e, older *entry, id uint64) int64 {
	first := beyondHorizon(e, older, id)
	if a, ok := e.ack(id); ok {
		first = min(first, a.From)
	}
	if dead, ok := e.retired(id); ok {
		first = min(first, dead)
	}
	return first
}

// beyondHorizon returns the first window in which the participant cannot use
// the older epoch. It needs g extensions of the n extenders, with itself if it
// is one. It has too few where n-g+1 of the others never extended its horizon
// to the window and have acknowledged e: those extend it under older epochs no
// more.
func beyondHorizon(e, older *entry, id uint64) int64 {
	g := older.extensionsNeeded(id)
	if g == 0 {
		return never
	}
	need := older.extenders() - g + 1
	horizons := make([]int64, 0, MaxMembers)
	for i, m := range older.Members {
		if a, ok := e.ack(m.ID); ok && m.ID != id && older.extends(i) {
			horizons = append(horizons, a.horizon(id))
		}
	}
	if len(horizons) < need {
		return never
	}
	slices.Sort(horizons)
	return sat.AddInt(horizons[need-1], 1)
}

// WaitsFor returns, ascending, the participants that keep the epoch at place i
// from being settled: its members that have not acknowledged it, and those
// outside that may use an older one until they acknowledge this one, or until a
// later epoch retires them. Those that an earlier epoch waits for are not among
// them.
func (t *Table) WaitsFor(i int) []uint64 {
	e := &t.entries[i]
	if e.from != never {
		return nil
	}
	var all []uint64
	for _, m := range e.Members {
		if _, ok := e.ack(m.ID); !ok {
			all = append(all, m.ID)
		}
	}
	outside := func(id ID) {
		j, ok := t.find(id)
		if !ok {
			return
		}
		older := &t.entries[j]
		for _, m := range older.Members {
			if !e.Has(m.ID) && coveredOf(e, older, m.ID) == never {
				all = append(all, m.ID)
			}
		}
	}
	outside(e.Pred)
	for _, a := range e.acks {
		for _, id := range a.Before {
			outside(id)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Reclaimable reports whether the share of a participant that is silent can be
// reclaimed while the refusing ones acknowledge an epoch without it.
func (e Epoch) Reclaimable(id uint64, refuse func(id uint64) bool) bool {
	g, n := e.extensionsNeeded(id), 0
	for i, m := range e.Members {
		if m.ID != id && e.extends(i) && refuse(m.ID) {
			n++
		}
	}
	return g > 0 && n >= e.extenders()-g+1
}

// ack returns the acknowledgement of e by the participant.
func (e *entry) ack(by uint64) (Ack, bool) {
	i, ok := slices.BinarySearchFunc(e.acks, by, compareAck)
	if !ok {
		return Ack{}, false
	}
	return e.acks[i], true
}
