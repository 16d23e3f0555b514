package node

import "github.com/georld/rld/crdt"

// index finds the entry of a key: open addressing with linear probing over
// four bytes a slot, eight of its bits hash, so that a lookup reads one line
// of the index and, as good as always, only the entry that it looked for. A
// map of the standard library reads two lines of its own, which at a million
// keys lie on more pages than the processor has translations at hand
// (docs/adr/0003).
//
// Keys are keyed hashes already, so their bits are used as they are: nobody
// without the secret can make them collide.
type index struct {
	slots []slot // length is a power of two
	count int
}

// slot is one place of the index: the number of the entry plus one, with the
// tag of its key above. 0 is an empty slot.
type slot uint32

const (
	minSlots  = 16
	entryBits = 24
	// maxEntries is how many entries a store can number.
	maxEntries = 1<<entryBits - 1
)

func (s slot) entry() int32 { return int32(s&(1<<entryBits-1)) - 1 }

// tagOf is eight bits of a key that no home uses.
func tagOf(k crdt.Key) slot { return slot(k.Lo>>56) << entryBits }

// owner is where the search for a key begins.
func (x *index) owner(k crdt.Key) uint32 { return uint32(k.Lo) & uint32(len(x.slots)-1) }

// find returns the entry of a key in a store, or -1.
func (x *index) find(k crdt.Key, s *store) int32 {
	if len(x.slots) == 0 {
		return -1
	}
	tag, mask := tagOf(k), uint32(len(x.slots)-1)
	for i := x.owner(k); ; i = (i + 1) & mask {
		sl := x.slots[i]
		if sl == 0 {
			return -1
		}
		if sl&^(1<<entryBits-1) == tag && s.at(sl.entry()).key == k {
			return sl.entry()
		}
	}
}

// add puts in a key that is not there.
func (x *index) add(k crdt.Key, entry int32, s *store) {
	if 5*(x.count+1) > 4*len(x.slots) { // at most four fifths full
		x.grow(s)
	}
	x.put(k, entry)
	x.count++
}

func (x *index) put(k crdt.Key, entry int32) {
	mask := uint32(len(x.slots) - 1)
	i := x.owner(k)
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = tagOf(k) | slot(entry+1)
}

// grow doubles the slots. It reads the keys in the order of the entries, which
// memory is good at, and not in that of the slots.
func (x *index) grow(s *store) {
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
			x.put(s.at(int32(i)).key, int32(i))
		}
	}
}

// remove takes out an entry that is there, and moves those behind it up so
// that no chain is broken (Knuth, TAOCP 3, 6.4, algorithm R).
func (x *index) remove(k crdt.Key, entry int32, s *store) {
	mask := uint32(len(x.slots) - 1)
	i := x.owner(k)
	for x.slots[i].entry() != entry {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; x.slots[j] != 0; j = (j + 1) & mask {
		// The hole may take j unless j's home lies behind the hole.
		if (j-x.owner(s.at(x.slots[j].entry()).key))&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = 0
	x.count--
}
