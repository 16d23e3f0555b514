package keytable

import "github.com/georld/rld/crdt"

// index finds the entry of a key: open addressing with linear probing over four
// bytes per slot. Eight of them are bits of the hash, so a lookup reads one
// cache line of the index and, almost always, only the entry that it looks for.
// A map of the standard library reads two lines of its own, which for a million
// keys are on more pages than the processor has translations for
// (docs/adr/0003).
//
// Keys are keyed hashes already, so their bits are used as they are: without
// the secret they cannot be made to collide.
type index struct {
	slots []slot // length is a power of two
	count int
}

// slot is the number of an entry plus one, with the tag of its key in the upper
// bits. 0 is an empty slot.
type slot uint32

const (
	minSlots  = 16
	entryBits = 24
	// MaxEntries is the maximum number of entries of a Table.
	MaxEntries = 1<<entryBits - 1
)

func (s slot) entry() int32 { return int32(s&(1<<entryBits-1)) - 1 }

// tagOf returns eight bits of a key that start does not use.
func tagOf(k crdt.Key) slot { return slot(k.Lo>>56) << entryBits }

// start returns the slot at which the search for a key starts.
func (x *index) start(k crdt.Key) uint32 { return uint32(k.Lo) & uint32(len(x.slots)-1) }

// find returns the entry of a key in a table, or -1.
func (x *index) find(k crdt.Key, s *Table) int32 {
	if len(x.slots) == 0 {
		return -1
	}
	tag, mask := tagOf(k), uint32(len(x.slots)-1)
	for i := x.start(k); ; i = (i + 1) & mask {
		sl := x.slots[i]
		if sl == 0 {
			return -1
		}
		if sl&^(1<<entryBits-1) == tag && s.At(sl.entry()).Key == k {
			return sl.entry()
		}
	}
}

// add adds a key that is not in the index.
func (x *index) add(k crdt.Key, entry int32, s *Table) {
	if 5*(x.count+1) > 4*len(x.slots) { // at most four fifths full
		x.grow(s)
	}
	x.put(k, entry)
	x.count++
}

func (x *index) put(k crdt.Key, entry int32) {
	mask := uint32(len(x.slots) - 1)
	i := x.start(k)
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = tagOf(k) | slot(entry+1)
}

// grow doubles the slots. It reads the keys in the order of the entries, which
// is sequential in memory, and not in that of the slots.
func (x *index) grow(s *Table) {
	old := x.slots
	x.slots = make([]slot, max(minSlots, 2*len(old)))
	used := make([]bool, s.used)
	for _, sl := range old {
		if sl != 0 {
			used[sl.entry()] = true
		}
	}
	for i, ok := range used {
		if ok {
			x.put(s.At(int32(i)).Key, int32(i))
		}
	}
}

// remove removes an entry that is in the index, and moves later ones up so that
// no chain is broken (Knuth, TAOCP 3, 6.4, algorithm R).
func (x *index) remove(k crdt.Key, entry int32, s *Table) {
	mask := uint32(len(x.slots) - 1)
	i := x.start(k)
	for x.slots[i].entry() != entry {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; x.slots[j] != 0; j = (j + 1) & mask {
		// The hole may take j unless j's search starts after the hole.
		if (j-x.start(s.At(x.slots[j].entry()).Key))&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = 0
	x.count--
}
