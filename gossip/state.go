package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
)

// none is an index that no cell and no key has.
const none = int32(-1)

// cell is one cell in memory. Its Value only grows. Its version is 0 only if it
// was never published. The fields that walks over changes and chains read lie
// together, from the cell's name to its key.
type cell struct {
	Cell
	version uint64           // of its last change, in the order of the list of changes
	source  crdt.Incarnation // the peer that sent its value, 0 for an own cell
	at      [listKinds]place // in the lists that it is in
	key     int32            // index of its key
	delayed bool
	used    bool

	// since is when the oldest increment of its latest version was counted.
	since time.Duration
	// sent is the part of Value.P in the latest message with it.
	sent uint64
	growth
	received time.Duration    // when its value was received
	via      crdt.Incarnation // the peer whose messages give its slope
}

// keyEntry is a key that has cells.
type keyEntry struct {
	key   crdt.Key
	chain cellList // of its cells
	cells int32
	rated int32 // cells of it that are extrapolated
	// aggregator is that of the key in the own region, as of a version of
	// roles.
	aggregator crdt.Incarnation
	roles      uint64
}

// state holds the cells. It never drops one before its end; when it is full, it
// refuses new ones. It is not safe for concurrent use.
type state struct {
	seed  uint64 // of the hashes
	byID  index  // of cells
	byKey index  // of keys

	cells    []cell
	freeCell []int32
	keys     []keyEntry
	freeKey  []int32
	max      int

	version uint64
	changes cellList
	delays  cellList

	digests map[crdt.Incarnation]*[buckets]crdt.Digest
	hand    int // next cell to check for expiry
}

// maxCellsOfKey bounds the cells of one key: the stamps of a sliding log on
// every daemon of a region.
const maxCellsOfKey = 16_384

func newState(max int, seed uint64) state {
	return state{
		max: max, seed: seed, changes: cellList{none, none}, delays: cellList{none, none},
		digests: map[crdt.Incarnation]*[buckets]crdt.Digest{},
	}
}

// find returns the index of a cell, or none.
func (s *state) find(id CellID) int32 {
	return s.byID.find(s.hash(&id), func(i int32) bool { return s.cells[i].CellID == id })
}

// keyOf returns the index of a key, or none if it has no cells.
func (s *state) keyOf(k crdt.Key) int32 {
	return s.byKey.find(s.hashKey(k), func(i int32) bool { return s.keys[i].key == k })
}

// add makes an empty cell. It returns none if there is no room.
func (s *state) add(id CellID, meta CellMeta) int32 {
	k := s.keyOf(id.Key)
	if s.byID.count >= s.max || k != none && s.keys[k].cells >= maxCellsOfKey {
		return none
	}
	if k == none {
		k = take(&s.keys, &s.freeKey)
		s.keys[k] = keyEntry{key: id.Key, chain: cellList{none, none}}
		s.byKey.add(s.hashKey(id.Key), k)
	}
	i := take(&s.cells, &s.freeCell)
	e := &s.keys[k]
	s.cells[i] = cell{Cell: Cell{CellID: id, CellMeta: meta}, key: k, used: true}
	s.link(&e.chain, keyList, i, place{none, e.chain.first})
	e.cells++
	s.byID.add(s.hash(&id), i)
	return i
}

// take returns the index of an unused element of a slab.
func take[T any](slab *[]T, free *[]int32) int32 {
	if n := len(*free); n > 0 {
		i := (*free)[n-1]
		*free = (*free)[:n-1]
		return i
	}
	var zero T
	*slab = append(*slab, zero)
	return int32(len(*slab) - 1)
}

// drop removes a cell.
func (s *state) drop(i int32) {
	c := &s.cells[i]
	s.digest(c, c.Value, crdt.PN{})
	s.unlist(i)
	s.setRate(i, 0)
	e := &s.keys[c.key]
	s.unlink(&e.chain, keyList, i)
	if e.cells--; e.cells == 0 {
		s.byKey.remove(s.hashKey(e.key), c.key)
		s.freeKey = append(s.freeKey, c.key)
	}
	s.byID.remove(s.hash(&c.CellID), i)
	*c = cell{}
	s.freeCell = append(s.freeCell, i)
}

// set gives a cell a greater value.
func (s *state) set(i int32, v crdt.PN) {
	c := &s.cells[i]
	s.digest(c, c.Value, v)
	c.Value = v
}

// expire checks the next budget cells, in turn, and drops those that end at
// floor (Unix milliseconds) or earlier.
func (s *state) expire(floor int64, budget int) {
	for range min(budget, len(s.cells)) {
		if s.hand >= len(s.cells) {
			s.hand = 0
		}
		if c := &s.cells[s.hand]; c.used && c.End(c.Window) <= floor {
			s.drop(int32(s.hand))
		}
		s.hand++
	}
}

// touch gives a cell a new version and moves it to the end of the changes.
func (s *state) touch(i int32, now time.Duration) {
	c := &s.cells[i]
	if !c.delayed {
		c.since = now
	}
	s.unlist(i)
	s.version++
	c.version = s.version
	s.link(&s.changes, changeList, i, place{s.changes.last, none})
}

// unlist removes a cell from the changes and from the delayed increments.
func (s *state) unlist(i int32) {
	c := &s.cells[i]
	if c.version != 0 {
		s.unlink(&s.changes, changeList, i)
	}
	if c.delayed {
		s.unlink(&s.delays, delayList, i)
	}
	c.version, c.delayed = 0, false
}

// delay delays the increment of a cell.
func (s *state) delay(i int32, now time.Duration) {
	c := &s.cells[i]
	if c.delayed {
		return
	}
	c.since, c.delayed = now, true
	s.link(&s.delays, delayList, i, place{s.delays.last, none})
}

// release publishes the increments that were delayed for at least quiet.
func (s *state) release(now, quiet time.Duration) {
	for range 1 << 16 {
		i := s.delays.first
		if i == none || now-s.cells[i].since < quiet {
			return
		}
		s.touch(i, now)
	}
}

// releaseDigested publishes the delayed increments of cells that are about to
// be compared: digests do not cover delayed increments.
func (s *state) releaseDigested(now time.Duration) {
	for i := s.delays.first; i != none; {
		next := s.cells[i].at[delayList].next
		if s.cells[i].digested() {
			s.touch(i, now)
		}
		i = next
	}
}

// after returns the first change later than a version. hint is the cell that
// probably has that version.
func (s *state) after(version uint64, hint int32) int32 {
	if version == 0 {
		return s.changes.first
	}
	if hint != none && int(hint) < len(s.cells) && s.cells[hint].version == version {
		return s.cells[hint].at[changeList].next
	}
	i := s.changes.last
	if i == none || s.cells[i].version <= version {
		return none
	}
	for p := i; p != none && s.cells[p].version > version; p = s.cells[p].at[changeList].prev {
		i = p
	}
	return i
}
