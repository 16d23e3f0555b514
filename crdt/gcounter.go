package crdt

import "iter"

// GCounter counts up, one slot a writer; its value is the sum of the slots.
// The order: one counter is at most another if each of its slots is. The zero
// value is empty and ready to use.
//
// A GCounter must not be copied by assignment: the copy shares its cells. Use
// Clone. What takes another counter only reads it and keeps nothing of it.
type GCounter struct{ t table[count] }

// count is the lattice of one slot of a GCounter.
type count uint64

func (c count) join(d count) count { return max(c, d) }

func (c count) pn() PN { return PN{P: uint64(c)} }

// Add counts n more in the writer's own slot. A slot stops at the greatest
// uint64. The error is a *SlotsError, when the slot is new and the counter
// full; then nothing was counted.
func (g *GCounter) Add(s Incarnation, n uint64) error {
	if i, ok := g.t.find(s); ok {
		c := &g.t.cells[i]
		c.value = count(AddSat(uint64(c.value), n))
		return nil
	}
	_, err := g.t.put(s, min(count(n), Max))
	return err
}

// Value returns the sum of all slots, the greatest uint64 if it is more.
func (g *GCounter) Value() uint64 {
	sum := uint64(0)
	for i := range g.t.cells {
		sum = AddSat(sum, uint64(g.t.cells[i].value))
	}
	return sum
}

// Get returns the count of a slot, 0 for one that is not there.
func (g *GCounter) Get(s Incarnation) uint64 { return uint64(g.t.get(s)) }

// Len returns the number of slots that counted anything.
func (g *GCounter) Len() int { return len(g.t.cells) }

// JoinCell joins one slot's count in, as received from a peer. It reports
// whether that changed the counter. More than Max counts as Max. The error is a
// *SlotsError.
func (g *GCounter) JoinCell(s Incarnation, n uint64) (changed bool, err error) {
	return g.t.put(s, min(count(n), Max))
}

// Join joins other in and reports whether that changed g. The error is a
// *SlotsError: a join that would exceed MaxSlots is refused whole. Memory is
// allocated only for slots that are new.
func (g *GCounter) Join(other *GCounter) (changed bool, err error) { return g.t.join(&other.t) }

// Delta returns the part of g that since lacks: joined into since it has the
// effect of g. It shares no memory with either and is empty if since covers g.
func (g *GCounter) Delta(since *GCounter) GCounter { return GCounter{g.t.delta(&since.t)} }

// Covers reports whether other is at most g: joining it would change nothing.
func (g *GCounter) Covers(other *GCounter) bool { return g.t.covers(&other.t) }

// Equal reports whether the counters have equal slots.
func (g *GCounter) Equal(other *GCounter) bool { return g.t.equal(&other.t) }

// Clone returns a copy with memory of its own.
func (g *GCounter) Clone() GCounter { return GCounter{g.t.clone()} }

// All yields the slots and their counts, slots ascending, counts never 0. The
// counter must not be changed meanwhile.
func (g *GCounter) All() iter.Seq2[Incarnation, uint64] {
	return func(yield func(Incarnation, uint64) bool) {
		for _, c := range g.t.cells {
			if !yield(c.incarnation, uint64(c.value)) {
				return
			}
		}
	}
}

// Digest returns the fingerprint of the counter's cells under a key and label.
func (g *GCounter) Digest(k Key, window int64) Digest { return g.t.digest(k, window) }

// String describes the counter for people: "7 {a: 5, b: 2}", slots in hexadecimal.
func (g *GCounter) String() string { return g.t.describe(g.Value()) }
