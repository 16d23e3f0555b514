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
// the secret they cannot be made to collide. All keys of a shard may have
// the lowest crdt.ShardBits bits in common. The first slot of a search has the
// bits above them, 25 at most, and the tag the highest eight.
//
// The slots double without a pause: each later addition moves a few of the old
// ones. Until all have moved, a key that is not in slots may be in old.
type index struct {
	slots []slot // length is a power of two
	old   []slot // those before the latest doubling, nil when all have moved
	hand  int    // the next one of old to move
	count int
}

// slot is the number of an entry plus one, with the tag of its key in the upper
// bits. 0 is an empty slot.
type slot uint32

// moved marks a slot of old whose entry has moved or was removed.
const moved slot = 1 << entryBits

const (
	minSlots  = 16
	entryBits = 24
	// movesPerAdd old slots are moved with each added key: some microseconds of
	// work. All have moved when the new slots are half full, and they double at
	// four fifths.
	movesPerAdd = 16
	// MaxEntries is the maximum number of entries of a Table.
	MaxEntries = 1<<entryBits - 1
)

func (s slot) entry() int32 { return int32(s&(1<<entryBits-1)) - 1 }

// tagOf returns eight bits of a key that start does not use.
func tagOf(k crdt.Key) slot { return slot(k>>56) << entryBits }

// start returns the slot of many at which the search for a key starts.
func start(slots []slot, k crdt.Key) uint32 { return uint32(k>>crdt.ShardBits) & uint32(len(slots)-1) }

// find returns the entry of a key in a table and its number, nil for none.
func (x *index) find(k crdt.Key, s *Table) (int32, *Entry) {
	if len(x.slots) == 0 {
		return -1, nil
	}
	tag, mask := tagOf(k), uint32(len(x.slots)-1)
	for i := start(x.slots, k); ; i = (i + 1) & mask {
		sl := x.slots[i]
		if sl == 0 {
			if at := x.findOld(k, s); at >= 0 {
				i := x.old[at].entry()
				return i, s.At(i)
			}
			return -1, nil
		}
		if sl&^(1<<entryBits-1) == tag {
			if e := s.At(sl.entry()); e.Key == k {
				return sl.entry(), e
			}
		}
	}
}

// findOld returns the old slot of a key that has not moved, or -1.
func (x *index) findOld(k crdt.Key, s *Table) int {
	if x.old == nil {
		return -1
	}
	tag, mask := tagOf(k), uint32(len(x.old)-1)
	for i := start(x.old, k); x.old[i] != 0; i = (i + 1) & mask {
		if sl := x.old[i]; sl != moved && sl&^(1<<entryBits-1) == tag && s.At(sl.entry()).Key == k {
			return int(i)
		}
	}
	return -1
}

// add adds a key that is not in the index.
func (x *index) add(k crdt.Key, entry int32, s *Table) {
	if 5*(x.count+1) > 4*len(x.slots) { // at most four fifths full
		x.move(len(x.old), s) // none are left, see movesPerAdd
		x.old, x.hand, x.slots = x.slots, 0, make([]slot, max(minSlots, 2*len(x.slots)))
	}
	x.move(movesPerAdd, s)
	x.put(k, entry)
	x.count++
}

func (x *index) put(k crdt.Key, entry int32) {
	mask := uint32(len(x.slots) - 1)
	i := start(x.slots, k)
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = tagOf(k) | slot(entry+1)
}

// move moves the next n old slots.
func (x *index) move(n int, s *Table) {
	for ; n > 0 && x.hand < len(x.old); n, x.hand = n-1, x.hand+1 {
		if sl := x.old[x.hand]; sl != 0 && sl != moved {
			x.put(s.At(sl.entry()).Key, sl.entry())
			x.old[x.hand] = moved
		}
	}
	if x.hand == len(x.old) {
		x.old, x.hand = nil, 0
	}
}

// remove removes an entry that is in the index, and moves later ones of slots
// up so that no chain is broken (Knuth, TAOCP 3, 6.4, algorithm R).
func (x *index) remove(k crdt.Key, entry int32, s *Table) {
	x.count--
	if at := x.findOld(k, s); at >= 0 {
		x.old[at] = moved
		return
	}
	mask := uint32(len(x.slots) - 1)
	i := start(x.slots, k)
	for x.slots[i].entry() != entry {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; x.slots[j] != 0; j = (j + 1) & mask {
		// The hole may take j unless j's search starts after the hole.
		if (j-start(x.slots, s.At(x.slots[j].entry()).Key))&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = 0
}
