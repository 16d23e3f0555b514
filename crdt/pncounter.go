package crdt

import (
	"fmt"
	"iter"
)

// PN is what one writer admitted and what of it was refunded. Both only grow,
// and N <= P. A P at the greatest count, Max, is saturated: nobody knows how much
// more it was, so it counts as that number and no refund is taken off it.
type PN struct{ P, N uint64 }

// Net returns what was admitted and not refunded.
func (v PN) Net() uint64 {
	if v.P >= Max {
		return v.P
	}
	return v.P - min(v.N, v.P)
}

// String returns "P-N".
func (v PN) String() string { return fmt.Sprintf("%d-%d", v.P, v.N) }

// join takes each maximum. That is right for one writer's pair, both numbers
// of which only grow: of two pairs one is the later in both. It keeps N <= P.
func (v PN) join(w PN) PN { return PN{max(v.P, w.P), max(v.N, w.N)} }

func (v PN) pn() PN { return v }

// PNCounter counts what was admitted and what was refunded, a PN a slot; its
// value is the sum of what each slot has net. The order: one counter is at
// most another if in each slot both numbers are. The zero value is empty and
// ready to use.
//
// Slots are joined element by element, because each has a single writer. Sums
// over slots must not be: they are a lattice of their own, Sum.
//
// A PNCounter must not be copied by assignment: the copy shares its cells. Use
// Clone. What takes another counter only reads it and keeps nothing of it.
type PNCounter struct{ t table[PN] }

// RefundError is the refusal of a refund that the slot has not admitted. The
// counter is as it was.
type RefundError struct {
	Incarnation Incarnation
	Has         PN
	Refund      uint64
}

// Error names the slot, what it has, and why that is not enough.
func (e *RefundError) Error() string {
	if e.Has.P >= Max {
		return fmt.Sprintf("crdt: refund of %d from slot %v, whose count is saturated", e.Refund, e.Incarnation)
	}
	return fmt.Sprintf("crdt: refund of %d from slot %v, which has only %d left to refund",
		e.Refund, e.Incarnation, e.Has.Net())
}

// CellError is the refusal of a cell that no correct peer sends: it has more
// refunded than admitted. The counter is as it was.
type CellError struct {
	Incarnation Incarnation
	Cell        PN
}

// Error names the slot and both numbers.
func (e *CellError) Error() string {
	return fmt.Sprintf("crdt: cell of slot %v refunds %d of %d admitted", e.Incarnation, e.Cell.N, e.Cell.P)
}

// Add counts n more as admitted in the writer's own slot. A slot stops at the
// greatest uint64. The error is a *SlotsError, when the slot is new and the
// counter full; then nothing was counted.
func (p *PNCounter) Add(s Incarnation, n uint64) error {
	if i, ok := p.t.find(s); ok {
		c := &p.t.cells[i]
		c.value.P = AddSat(c.value.P, n)
		return nil
	}
	_, err := p.t.put(s, PN{P: min(n, Max)})
	return err
}

// Refund takes back n of what the writer admitted in its own slot. The error
// is a *RefundError, when it has not that much left; then nothing was refunded.
// That a refund is applied once is up to the caller.
func (p *PNCounter) Refund(s Incarnation, n uint64) error {
	if n == 0 {
		return nil
	}
	i, ok := p.t.find(s)
	if !ok {
		return &RefundError{Incarnation: s, Refund: n}
	}
	v := &p.t.cells[i].value
	if v.P >= Max || n > v.P-v.N {
		return &RefundError{Incarnation: s, Has: *v, Refund: n}
	}
	v.N += n
	return nil
}

// Value returns the sum of what all slots have net, the greatest uint64 if it
// is more.
func (p *PNCounter) Value() uint64 {
	sum := uint64(0)
	for i := range p.t.cells {
		sum = AddSat(sum, p.t.cells[i].value.Net())
	}
	return sum
}

// Sum returns the counter as an aggregator publishes it: all P and all N
// summed up. If P is the greatest uint64 or more, refunds are forgotten, so
// that the sum errs only upwards. A greater counter has a greater sum.
func (p *PNCounter) Sum() Sum {
	var s Sum
	for _, c := range p.t.cells {
		s.P = AddSat(s.P, c.value.P)
		s.N = AddSat(s.N, c.value.N)
	}
	if s.P >= Max {
		s.N = 0
	}
	return s
}

// Get returns the numbers of a slot, zeros for one that is not there.
func (p *PNCounter) Get(s Incarnation) PN { return p.t.get(s) }

// Len returns the number of slots that counted anything.
func (p *PNCounter) Len() int { return len(p.t.cells) }

// JoinCell joins one slot's numbers in, as received from a peer. It reports
// whether that changed the counter. More than Max counts as Max. The error is a
// *CellError or a *SlotsError.
func (p *PNCounter) JoinCell(s Incarnation, v PN) (changed bool, err error) {
	if v.N > v.P {
		return false, &CellError{Incarnation: s, Cell: v}
	}
	return p.t.put(s, PN{min(v.P, Max), min(v.N, Max)})
}

// Join joins other in and reports whether that changed p. The error is a
// *SlotsError: a join that would exceed MaxSlots is refused whole. Memory is
// allocated only for slots that are new.
func (p *PNCounter) Join(other *PNCounter) (changed bool, err error) { return p.t.join(&other.t) }

// Delta returns the part of p that since lacks: joined into since it has the
// effect of p. It shares no memory with either and is empty if since covers p.
func (p *PNCounter) Delta(since *PNCounter) PNCounter { return PNCounter{p.t.delta(&since.t)} }

// Covers reports whether other is at most p: joining it would change nothing.
func (p *PNCounter) Covers(other *PNCounter) bool { return p.t.covers(&other.t) }

// Equal reports whether the counters have equal slots.
func (p *PNCounter) Equal(other *PNCounter) bool { return p.t.equal(&other.t) }

// Clone returns a copy with memory of its own.
func (p *PNCounter) Clone() PNCounter { return PNCounter{p.t.clone()} }

// All yields the slots and their numbers, slots ascending, P never 0. The
// counter must not be changed meanwhile.
func (p *PNCounter) All() iter.Seq2[Incarnation, PN] {
	return func(yield func(Incarnation, PN) bool) {
		for _, c := range p.t.cells {
			if !yield(c.incarnation, c.value) {
				return
			}
		}
	}
}

// Digest returns the fingerprint of the counter's cells under a key and label.
func (p *PNCounter) Digest(k Key, window int64) Digest { return p.t.digest(k, window) }

// String describes the counter for people: "6 {a: 5-1, b: 2-0}", slots in
// hexadecimal.
func (p *PNCounter) String() string { return p.t.describe(p.Value()) }
