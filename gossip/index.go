package gossip

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/rendezvous"
)

// index finds numbered items by a hash of their names, with open addressing and
// linear probing. A map of the standard library would store the names a second
// time, and there are many cells. The zero value is an empty index.
//
// Hashes are seeded, so that no peer can make names collide.
type index struct {
	entries []indexEntry // length is a power of two, at least a quarter is empty
	count   int
}

// indexEntry holds a hash, and the number plus one or 0 for an empty slot.
type indexEntry struct {
	hash   uint32
	number int32
}

const minIndexEntries = 16

// find returns the number with a hash for which same is true, or none.
func (x *index) find(hash uint32, same func(int32) bool) int32 {
	if x.count == 0 {
		return none
	}
	mask := uint32(len(x.entries) - 1)
	for i := hash & mask; x.entries[i].number != 0; i = (i + 1) & mask {
		if s := x.entries[i]; s.hash == hash && same(s.number-1) {
			return s.number - 1
		}
	}
	return none
}

// first returns the first number with a hash, or none.
func (x *index) first(hash uint32) int32 {
	if x.count == 0 {
		return none
	}
	mask := uint32(len(x.entries) - 1)
	i := hash & mask
	for x.entries[i].number != 0 && x.entries[i].hash != hash {
		i = (i + 1) & mask
	}
	return x.entries[i].number - 1
}

// add adds a number that is not there.
func (x *index) add(hash uint32, number int32) {
	if 4*(x.count+1) > 3*len(x.entries) {
		old := x.entries
		x.entries = make([]indexEntry, max(minIndexEntries, 2*len(old)))
		for _, s := range old {
			if s.number != 0 {
				x.put(s)
			}
		}
	}
	x.put(indexEntry{hash, number + 1})
	x.count++
}

func (x *index) put(s indexEntry) {
	mask := uint32(len(x.entries) - 1)
	i := s.hash & mask
	for x.entries[i].number != 0 {
		i = (i + 1) & mask
	}
	x.entries[i] = s
}

// remove removes a number that is there, and moves up those behind it so that
// no chain is broken (Knuth, TAOCP 3, 6.4, algorithm R).
func (x *index) remove(hash uint32, number int32) {
	mask := uint32(len(x.entries) - 1)
	i := hash & mask
	for x.entries[i].number != number+1 {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; x.entries[j].number != 0; j = (j + 1) & mask {
		// j may fill the hole unless its first slot lies behind the hole.
		if (j-x.entries[j].hash)&mask >= (j-i)&mask {
			x.entries[i] = x.entries[j]
			i = j
		}
	}
	x.entries[i] = indexEntry{}
	x.count--
}

// hashKey returns the hash of a key. The bits of a key are a hash already, but
// with a secret that all daemons share, and peers choose the keys they send.
func (s *state) hashKey(k crdt.Key) uint32 {
	return uint32(rendezvous.Mix(uint64(k) ^ s.seed))
}

// hash returns the hash of a cell's name.
func (s *state) hash(a *CellID) uint32 {
	return uint32(rendezvous.Mix(uint64(a.Key) ^ rendezvous.Mix(s.seed^uint64(a.Window)^uint64(a.Incarnation)+uint64(a.Kind))))
}

// slab holds elements by number, in chunks that never move: growing copies
// nothing. The numbers of removed elements are used again.
type slab[T any] struct {
	chunks []*[chunkSize]T
	used   int // numbers that were ever in use
	free   []int32
}

const (
	chunkBits = 8
	chunkSize = 1 << chunkBits
)

// at returns an element by its number, below used.
func (s *slab[T]) at(i int32) *T { return &s.chunks[i>>chunkBits][i&(chunkSize-1)] }

// add adds an element and returns its number.
func (s *slab[T]) add(v T) int32 {
	i := int32(s.used)
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		if s.used == len(s.chunks)*chunkSize {
			s.chunks = append(s.chunks, new([chunkSize]T))
		}
		s.used++
	}
	*s.at(i) = v
	return i
}

// remove sets an element to its zero value.
func (s *slab[T]) remove(i int32) {
	var zero T
	*s.at(i) = zero
	s.free = append(s.free, i)
}

// metas holds the descriptions of cells by number. Cells are many and their
// descriptions few, so each is held once. The zero value is empty.
type metas struct {
	all     []usedMeta
	numbers map[CellMeta]int32
	free    []int32
	latest  int32 // that was asked for
}

// usedMeta is a description and the number of cells that have it.
type usedMeta struct {
	CellMeta
	cells int
}

// take returns the number of a description, for one more cell.
func (m *metas) take(meta CellMeta) int32 {
	i := m.latest
	if int(i) >= len(m.all) || m.all[i].cells == 0 || m.all[i].CellMeta != meta {
		i = m.number(meta)
		m.latest = i
	}
	m.all[i].cells++
	return i
}

// number returns the number of a description, a new one at first.
func (m *metas) number(meta CellMeta) int32 {
	if i, ok := m.numbers[meta]; ok {
		return i
	}
	i := int32(len(m.all))
	if n := len(m.free); n > 0 {
		i, m.free = m.free[n-1], m.free[:n-1]
		m.all[i].CellMeta = meta
	} else {
		m.all = append(m.all, usedMeta{CellMeta: meta})
	}
	if m.numbers == nil {
		m.numbers = make(map[CellMeta]int32)
	}
	m.numbers[meta] = i
	return i
}

// release notes that one cell fewer has a description, and forgets it with the
// last one.
func (m *metas) release(i int32) {
	e := &m.all[i]
	if e.cells--; e.cells == 0 {
		delete(m.numbers, e.CellMeta)
		m.free = append(m.free, i)
	}
}
