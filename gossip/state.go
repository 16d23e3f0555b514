package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
)

// none is the index of no cell and no key.
const none = int32(-1)

// cell is one cell at rest. Invariants: Value only grows; version is 0 only for
// a cell that was never published. What the walks over changes and chains read
// lies together, from the cell's name to its key.
type cell struct {
	Cell
	version    uint64           // of its last change, in the order of the changes list
	from       crdt.Incarnation // the peer that told its value, 0 for an own cell
	prev, next int32            // in the list of changes
	back, fwd  int32            // in the chain of its key
	key        int32            // index of its key
	waiting    bool
	used       bool

	// since is when the oldest increment of its latest version came.
	since time.Duration
	// sent is what of Value.P was in the latest message about it.
	sent uint64
	growth
	told     time.Duration    // when its value came
	via      crdt.Incarnation // the peer by whose messages its growth is judged
	waitBack int32            // in the list of those that wait
	waitNext int32
}

// keyEntry is a key that has cells.
type keyEntry struct {
	key   crdt.Key
	first int32 // of its chain
	cells int32
	rated int32 // cells of it that are extrapolated
	// aggregator is who sums the key up for our region, as of the
	// arranged-th time that the region's work was shared out.
	aggregator crdt.Incarnation
	arranged   uint64
}

// state holds the cells. It never forgets one before its time; when it is
// full, new ones are refused. It is not safe for concurrent use.
type state struct {
	seed  uint64 // of the hashes
	byID  index  // of cells
	byKey index  // of keys

	cells    []cell
	freeCell []int32
	keys     []keyEntry
	freeKey  []int32
	max      int

	version    uint64
	head, tail int32 // changes, versions ascending
	waitHead   int32 // increments that wait, the longest first
	waitTail   int32

	digests map[crdt.Incarnation]*[buckets]crdt.Digest
	hand    int // next cell to look at for expiry
}

// maxCellsOfKey bounds the cells of one key: the stamps of a sliding log on
// every daemon of a region.
const maxCellsOfKey = 16_384

func newState(max int, seed uint64) state {
	return state{
		max: max, seed: seed, head: none, tail: none, waitHead: none, waitTail: none,
		digests: map[crdt.Incarnation]*[buckets]crdt.Digest{},
	}
}

// find returns a cell's index, none when there is none.
func (s *state) find(id CellID) int32 {
	return s.byID.find(s.hash(&id), func(i int32) bool { return s.cells[i].CellID == id })
}

// keyOf returns a key's index, none when it has no cells.
func (s *state) keyOf(k crdt.Key) int32 {
	return s.byKey.find(s.hashKey(k), func(i int32) bool { return s.keys[i].key == k })
}

// add makes an empty cell. It returns none when there is no room.
func (s *state) add(id CellID, span CellMeta) int32 {
	k := s.keyOf(id.Key)
	if s.byID.count >= s.max || k != none && s.keys[k].cells >= maxCellsOfKey {
		return none
	}
	if k == none {
		k = take(&s.keys, &s.freeKey)
		s.keys[k] = keyEntry{key: id.Key, first: none}
		s.byKey.add(s.hashKey(id.Key), k)
	}
	i := take(&s.cells, &s.freeCell)
	e := &s.keys[k]
	s.cells[i] = cell{
		Cell: Cell{CellID: id, CellMeta: span}, key: k, used: true,
		prev: none, next: none, back: none, fwd: e.first, waitBack: none, waitNext: none,
	}
	if e.first != none {
		s.cells[e.first].back = i
	}
	e.first = i
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

// drop forgets a cell.
func (s *state) drop(i int32) {
	c := &s.cells[i]
	s.digest(c, c.Value, crdt.PN{})
	s.unlist(i)
	s.unwait(i)
	s.setRate(i, 0)
	e := &s.keys[c.key]
	if c.back != none {
		s.cells[c.back].fwd = c.fwd
	} else {
		e.first = c.fwd
	}
	if c.fwd != none {
		s.cells[c.fwd].back = c.back
	}
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

// expire drops cells whose label is over at now, of up to budget that it
// looks at, round and round. floor is the instant, in Unix milliseconds,
// before whose coming to an end a cell is dropped.
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
	if !c.waiting {
		c.since = now
	}
	s.unwait(i)
	s.unlist(i)
	s.version++
	c.version = s.version
	c.prev, c.next = s.tail, none
	if s.tail != none {
		s.cells[s.tail].next = i
	} else {
		s.head = i
	}
	s.tail = i
}

func (s *state) unlist(i int32) {
	c := &s.cells[i]
	if c.version == 0 {
		return
	}
	if c.prev != none {
		s.cells[c.prev].next = c.next
	} else {
		s.head = c.next
	}
	if c.next != none {
		s.cells[c.next].prev = c.prev
	} else {
		s.tail = c.prev
	}
	c.prev, c.next, c.version = none, none, 0
}

// wait keeps a cell's increment back.
func (s *state) wait(i int32, now time.Duration) {
	c := &s.cells[i]
	if c.waiting {
		return
	}
	c.since = now
	c.waiting, c.waitBack, c.waitNext = true, s.waitTail, none
	if s.waitTail != none {
		s.cells[s.waitTail].waitNext = i
	} else {
		s.waitHead = i
	}
	s.waitTail = i
}

func (s *state) unwait(i int32) {
	c := &s.cells[i]
	if !c.waiting {
		return
	}
	if c.waitBack != none {
		s.cells[c.waitBack].waitNext = c.waitNext
	} else {
		s.waitHead = c.waitNext
	}
	if c.waitNext != none {
		s.cells[c.waitNext].waitBack = c.waitBack
	} else {
		s.waitTail = c.waitBack
	}
	c.waiting, c.waitBack, c.waitNext = false, none, none
}

// after returns the first change later than a version. hint is where it may
// be looked for first: the cell that had that version.
func (s *state) after(version uint64, hint int32) int32 {
	if version == 0 {
		return s.head
	}
	if hint != none && int(hint) < len(s.cells) && s.cells[hint].version == version {
		return s.cells[hint].next
	}
	i := s.tail
	if i == none || s.cells[i].version <= version {
		return none
	}
	for p := s.cells[i].prev; p != none && s.cells[p].version > version; p = s.cells[p].prev {
		i = p
	}
	return i
}
