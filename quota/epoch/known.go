package epoch

import "slices"

// EntryView is what a table knows of one epoch, for those who pass it on and for
// people. Its slices are the table's: do not modify them, and do not keep them
// over the next call that may change the table.
type EntryView struct {
	Epoch Epoch
	// From is the first label it is settled for; Settled is false and From
	// meaningless while it is not.
	From    int64
	Settled bool
	// Mine says that the owner is bound by it.
	Mine bool
	// Acks are those taken in, by participant; a table made by New has its own
	// among them as soon as it is made, stored or not.
	Acks []Ack
}

// Len returns how many epochs the table knows.
func (t *Table) Len() int { return len(t.entries) }

// At returns the epoch at place i of the table, from 0, ascending by ID. The
// first is the base: it is settled for all labels that are asked for.
func (t *Table) At(i int) EntryView {
	e := &t.entries[i]
	return EntryView{Epoch: e.Epoch, From: e.from, Settled: e.from != never, Mine: e.mine, Acks: e.acks}
}

// Revision changes whenever an answer of Share, Part or Base may have changed
// because of an epoch. Grants and bounds do not count: they change answers
// only for labels for which the answer was 0.
func (t *Table) Revision() uint64 { return t.revision }

// Waiting reports whether the table lost its memory and waits for reports.
func (t *Table) Waiting() bool { return t.waiting }

// Bounds returns how far the stored record reaches.
func (t *Table) Bounds() Bounds { return t.durable }

// ExtendedUntil returns the last label for which enough others have granted the
// owner its base under every epoch from the settled one on; ok is false where
// no grants are needed.
func (t *Table) ExtendedUntil() (until int64, ok bool) {
	s, _, _ := t.Settled()
	first, _ := t.find(s.ID)
	until = never
	for i := first; i < len(t.entries); i++ {
		e := &t.entries[i]
		if e.grantsNeeded() <= 1 || !e.Has(t.owner) {
			continue
		}
		ok = true
		until = min(until, t.grantedUntil(e))
	}
	return until, ok
}

// CompactHeld forgets which epochs of another table must be known where they
// are below the base of that table: to know the base is enough, as whoever
// knows it knows that it has replaced them.
func (t *Table) CompactHeld(table uint64, base ID) {
	for i := range t.entries {
		e := &t.entries[i]
		n := len(e.held)
		e.held = slices.DeleteFunc(slices.Clone(e.held), func(h Dependency) bool {
			return h.Table == table && h.ID.Before(base)
		})
		if len(e.held) < n {
			e.hold([]Dependency{{Table: table, ID: base}})
		}
	}
}
