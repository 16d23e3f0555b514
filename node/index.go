package node

import "github.com/georld/rld/crdt"

// index finds the entry of a key: open addressing with linear probing over
// eight bytes a slot, half of them hash, so that a lookup reads one line of
// the index and, as good as always, only the entry that it looked for. A map
// of the standard library reads two lines of its own and takes twice the
// memory (docs/adr/0003).
//
// Keys are keyed hashes already, so their bits are used as they are: nobody
// without the secret can make them collide.
type index struct {
	slots []slot // length is a power of two
	count int
}

// slot is one place of the index. entry is the number of the entry plus one,
// 0 for an empty slot.
type slot struct{ hash, entry uint32 }

const minSlots = 16

func hashOf(k crdt.Key) uint32 { return uint32(k.Lo) }

// find returns the entry of a key, or -1. at says what an entry holds.
func (x *index) find(k crdt.Key, s *store) int32 {
	if len(x.slots) == 0 {
		return -1
	}
	h, mask := hashOf(k), uint32(len(x.slots)-1)
	for i := h & mask; ; i = (i + 1) & mask {
		sl := x.slots[i]
		if sl.entry == 0 {
			return -1
		}
		if sl.hash == h && s.at(int32(sl.entry-1)).key == k {
			return int32(sl.entry - 1)
		}
	}
}

// add puts in a key that is not there.
func (x *index) add(k crdt.Key, entry int32) {
	if 5*(x.count+1) > 4*len(x.slots) { // at most four fifths full
		x.grow()
	}
	x.put(slot{hashOf(k), uint32(entry) + 1})
	x.count++
}

func (x *index) put(sl slot) {
	mask := uint32(len(x.slots) - 1)
	i := sl.hash & mask
	for x.slots[i].entry != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = sl
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]slot, max(minSlots, 2*len(old)))
	for _, sl := range old {
		if sl.entry != 0 {
			x.put(sl)
		}
	}
}

// remove takes out an entry that is there, and moves those behind it up so
// that no chain is broken (Knuth, TAOCP 3, 6.4, algorithm R).
func (x *index) remove(k crdt.Key, entry int32) {
	mask := uint32(len(x.slots) - 1)
	i := hashOf(k) & mask
	for x.slots[i].entry != uint32(entry)+1 {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; x.slots[j].entry != 0; j = (j + 1) & mask {
		home := x.slots[j].hash & mask
		// The hole may take j unless j's home lies behind the hole.
		if (j-home)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = slot{}
	x.count--
}
