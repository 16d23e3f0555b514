package epoch

import "slices"

// settle looks again at the epochs that are not settled yet, lowest first, as
// each needs its predecessor.
func (t *Table) settle() {
	for i := range t.entries {
		e := &t.entries[i]
		if e.from != never {
			continue
		}
		if e.from = t.settledFrom(e); e.from != never {
			t.revision++
			t.inherit(e)
		}
	}
}

// inherit makes a settled epoch ask for all that its predecessor asked its
// members to know of other tables. Those who acknowledge e may have been let in
// by the predecessor, and need not have learned that yet when they do.
func (t *Table) inherit(e *entry) {
	if t.broken&flawNoChain != 0 {
		return
	}
	if p, ok := t.find(e.Pred); ok && t.entries[p].ID != e.ID {
		e.hold(t.entries[p].held)
	}
}

// settledFrom returns the first label that e is settled for, never if there is
// none. e is settled for the labels for which
//   - its predecessor is,
//   - all its members have acknowledged it, and
//   - nobody else can use the base of an older epoch: see covered. Older epochs
//     that count are the predecessor, and all that somebody who acknowledged e
//     had acknowledged before: somebody may hold them settled.
func (t *Table) settledFrom(e *entry) int64 {
	p, ok := t.find(e.Pred)
	if !ok || t.entries[p].from == never {
		return never
	}
	from := t.entries[p].from
	if t.broken&flawNoInherit != 0 {
		from = always
	}
	for _, m := range e.Members {
		a, ok := e.ack(m.ID)
		if !ok {
			return never
		}
		from = max(from, a.From)
	}
	from = max(from, t.covered(e, &t.entries[p]))
	if t.broken&flawNoReports != 0 {
		return from
	}
	for _, a := range e.acks {
		for _, id := range a.Before {
			f, ok := t.find(id)
			if from == never || !ok {
				return never
			}
			from = max(from, t.covered(e, &t.entries[f]))
		}
	}
	return from
}

// covered returns the first label from which no member of the older epoch uses
// a base without regard to e: it has acknowledged e; or it is outside e, and
// either the operator said it is dead, or so few members of the older epoch
// are left to grant it a label that it cannot have enough.
func (t *Table) covered(e, older *entry) int64 {
	from := int64(always)
	for _, k := range older.Members {
		if e.Has(k.ID) {
			continue // it must have acknowledged e, which was looked at
		}
		first := int64(never)
		if a, ok := e.ack(k.ID); ok {
			first = a.From
		}
		if dead, ok := e.retired(k.ID); ok {
			first = min(first, dead)
		}
		first = min(first, t.beyondGrants(e, older, k.ID))
		from = max(from, first)
	}
	return from
}

// beyondGrants returns the first label that the participant cannot use under
// the older epoch. It needs g grants, its own among them, of the n members; so
// it has too few where n-g+1 of the others, who grant it nothing under older
// epochs any more, have never granted it that label.
func (t *Table) beyondGrants(e, older *entry, id uint64) int64 {
	g := older.grantsNeeded()
	if g == 0 {
		return never
	}
	need := len(older.Members) - g + 1
	if t.broken&flawEasyReclaim != 0 {
		need = 1
	}
	reaches := make([]int64, 0, MaxMembers)
	for _, m := range older.Members {
		if a, ok := e.ack(m.ID); ok && m.ID != id {
			reaches = append(reaches, a.reach(id))
		}
	}
	if len(reaches) < need {
		return never
	}
	slices.Sort(reaches)
	return after(reaches[need-1])
}

// ack returns the acknowledgement of e by the participant.
func (e *entry) ack(by uint64) (Ack, bool) {
	i, ok := slices.BinarySearchFunc(e.acks, by, compareAck)
	if !ok {
		return Ack{}, false
	}
	return e.acks[i], true
}
