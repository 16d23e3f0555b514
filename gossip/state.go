package gossip

import (
	"math"
	"time"

	"github.com/georld/rld/crdt"
)

// none is an index that no cell and no key has.
const none = int32(-1)

// cell is one cell in memory. Its Value only grows. Its version is 0 only if it
// was never published. It takes two cache lines, of which walks over the cells
// of a key read the first one, up to delayed.
type cell struct {
	Key         crdt.Key
	Window      int64
	Incarnation crdt.Incarnation
	Value       crdt.PN
	ofKey       place // in the list of its key
	key         int32 // index of its key
	Kind        Kind
	used        bool
	delayed     bool
	held        bool // the sum that it is part of was withheld when it changed last
	small       bool // what it grew by since it was sent may wait: see small

	version  uint64           // of its last change, in the order of the list of changes
	source   crdt.Incarnation // the peer that sent it, 0 if it changed here too
	via      crdt.Incarnation // the peer whose messages give its slope
	received time.Duration    // when its value was received
	growth
	change place // in the list of changes
	Rate   uint32
	meta   int32 // number of its description
}

// unsent is what the writers of a cell need, and its readers do not.
type unsent struct {
	since time.Duration // when the oldest increment of its version was counted
	delay place         // in the list of delayed increments
}

// id returns the name of a cell.
func (c *cell) id() CellID { return CellID{c.Key, c.Window, c.Kind, c.Incarnation} }

// is reports whether a cell has a name.
func (c *cell) is(id *CellID) bool {
	return c.Key == id.Key && c.Window == id.Window && c.Incarnation == id.Incarnation && c.Kind == id.Kind
}

// keyEntry is a key that has cells. Each hit reads its first two cache lines,
// up to surge.
type keyEntry struct {
	key   crdt.Key
	chain cellList // of its cells
	rated int32    // cells of it that are extrapolated
	load  int32    // number of its load plus one, 0 for none
	// pair is that of the key in the own region, as of a version of roles.
	pair  pair
	roles uint64
	near  int64 // the latest window in which it was near its limit

	cells     int32
	estimates int32 // its cells of kind Others
	surge

	// sumOf is the latest window whose sums other regions receive from here.
	// The next fields are about it: see sums.
	sumOf int64
	// summed is the sum of the region that other regions were sent last.
	summed uint64
	// slack is by how much it may have grown without being sent.
	slack uint64
	// left is the version of the latest change that was not withheld, and
	// leftSum the sum then.
	left, leftSum uint64
	// unsentFrom is when it grew first since, 0 for not yet.
	unsentFrom time.Duration
	// promptAt is from when on it is due in other regions, earlier than at the
	// interval, 0 for not.
	promptAt time.Duration
	// sumGrew is by how much it had grown, at the version sumAt, since it was
	// before, at most an interval ago at sumFrom.
	sumAt, sumGrew, before uint64
	sumFrom                time.Duration
	// informed is how many hits were left in the window informedOf when the
	// region was informed last.
	informedOf int64
	informed   uint64
}

// state holds the cells. It never drops one before its end; when it is full, it
// refuses new ones. It is not safe for concurrent use.
type state struct {
	seed  uint64 // of the hashes
	byID  index  // of cells
	byKey index  // of keys

	cells   slab[cell]
	unsents slab[unsent] // by the numbers of the cells
	metas   metas
	numbers metaNumbers // of these in messages
	keys    slab[keyEntry]
	loads   slab[load]
	max     int

	version uint64
	ahead   uint64 // a use for what locate reads ahead
	changes cellList
	delays  cellList

	digests    map[crdt.Incarnation]*[buckets]crdt.Digest
	undigested bool // digests are not kept: see keepDigests
	hand       int  // next cell to check for expiry
	// No cell ends before soonest (Unix milliseconds), and none of those that
	// the present pass has checked or that came since before later.
	soonest, later int64
}

// maxCellsOfKey bounds the cells of one key: the stamps of a sliding log on
// every daemon of a region.
const maxCellsOfKey = 16_384

func newState(max int, seed uint64) state {
	return state{
		max: max, seed: seed, changes: cellList{none, none}, delays: cellList{none, none},
		digests: map[crdt.Incarnation]*[buckets]crdt.Digest{}, soonest: math.MaxInt64, later: math.MaxInt64,
	}
}

// find returns the index of a cell, or none.
func (s *state) find(id CellID) int32 {
	return s.byID.find(s.hash(&id), func(i int32) bool { return s.cells.at(i).is(&id) })
}

// located is a cell of a message in memory: nil and none where it must be
// searched with find.
type located struct {
	cell *cell
	at   int32
}

// locate appends the cells of a peer's message to found. It reads the entries
// of all cells before the first cell, and no cell depends on another one: a
// processor then waits for the memory of many at once, and not for one after
// the other. It reads all that a merge of the cells will read or write.
func (s *state) locate(found []located, in []Cell, self, from crdt.Incarnation) []located {
	for i := range in {
		found = append(found, located{at: s.byID.first(s.hash(&in[i].CellID))})
	}
	for i := range found {
		f := &found[i]
		if f.at == none {
			continue
		}
		c := s.cells.at(f.at)
		s.ahead += c.version // in the second line of a cell, as its name is in the first one
		if !c.used || !c.is(&in[i].CellID) {
			f.at = none
			continue
		}
		f.cell = c
	}
	for i := range found {
		if c := found[i].cell; c != nil {
			s.ahead += s.keys.at(c.key).roles
		}
	}
	for i := range found {
		c := found[i].cell
		if c == nil {
			continue
		}
		// Most cells stay where they are among the changes (passesOn). Those
		// that move write to their neighbors.
		if winner := s.keys.at(c.key).pair.aggregator; winner != self && (c.Kind == Daemon || winner == from) {
			continue
		}
		s.ahead += uint64(s.unsents.at(found[i].at).since)
		p := c.change
		if p.prev != none {
			s.ahead += s.cells.at(p.prev).version
		}
		if p.next != none {
			s.ahead += s.cells.at(p.next).version
		}
	}
	return found
}

// keyOf returns the index of a key, or none if it has no cells.
func (s *state) keyOf(k crdt.Key) int32 {
	return s.byKey.find(s.hashKey(k), func(i int32) bool { return s.keys.at(i).key == k })
}

// add makes an empty cell. It returns none if there is no room.
func (s *state) add(id CellID, meta CellMeta) int32 {
	k := s.keyOf(id.Key)
	if s.byID.count >= s.max || k != none && s.keys.at(k).cells >= maxCellsOfKey {
		return none
	}
	if k == none {
		k = s.keys.add(keyEntry{key: id.Key, chain: cellList{none, none}})
		s.byKey.add(s.hashKey(id.Key), k)
	}
	i := s.cells.add(cell{
		Key: id.Key, Window: id.Window, Incarnation: id.Incarnation, Kind: id.Kind,
		key: k, used: true, meta: s.metas.take(meta),
	})
	if int(i) == s.unsents.used {
		s.unsents.add(unsent{})
	}
	e := s.keys.at(k)
	s.link(&e.chain, keyList, i, s.placeOf(&e.chain, id.Window))
	e.cells++
	if id.Kind == Others {
		e.estimates++
	}
	s.byID.add(s.hash(&id), i)
	end := meta.End(id.Window)
	s.soonest, s.later = min(s.soonest, end), min(s.later, end)
	return i
}

// drop removes a cell.
func (s *state) drop(i int32) {
	c := s.cells.at(i)
	s.digest(c, c.Value, crdt.PN{})
	s.unlist(i)
	s.setRate(c, 0)
	e := s.keys.at(c.key)
	s.unlink(&e.chain, keyList, i)
	if c.Kind == Others {
		e.estimates--
	}
	if e.cells--; e.cells == 0 {
		s.dropLoad(e)
		s.byKey.remove(s.hashKey(e.key), c.key)
		s.keys.remove(c.key)
	}
	id := c.id()
	s.byID.remove(s.hash(&id), i)
	s.metas.release(c.meta)
	s.cells.remove(i)
}

// meta returns the description of a cell.
func (s *state) meta(c *cell) *CellMeta { return &s.metas.all[c.meta].CellMeta }

// describe adds a description to that of a cell.
func (s *state) describe(c *cell, by *CellMeta) {
	meta := s.meta(c).join(by)
	if meta == *s.meta(c) {
		return
	}
	was := c.meta
	c.meta = s.metas.take(meta)
	s.metas.release(was)
}

// end returns the instant in Unix milliseconds from which a cell no longer
// counts by a correct clock.
func (s *state) end(c *cell) int64 { return s.meta(c).End(c.Window) }

// copy returns a cell as in messages.
func (s *state) copy(c *cell) Cell {
	return Cell{CellMeta: *s.meta(c), Rate: c.Rate, Value: c.Value, CellID: c.id()}
}

// set gives a cell a greater value.
func (s *state) set(c *cell, v crdt.PN) {
	s.digest(c, c.Value, v)
	c.Value = v
}

// expire checks the next budget cells, in turn, and drops those that end at
// floor (Unix milliseconds) or earlier. A cell ends with the one of the longest
// carry among those of its key and window.
func (s *state) expire(now time.Duration, floor int64, budget int) {
	for range min(budget, s.cells.used) {
		if s.hand >= s.cells.used {
			s.hand, s.soonest, s.later = 0, s.later, math.MaxInt64
		}
		if floor < s.soonest {
			s.later = min(s.later, s.soonest)
		} else if c := s.cells.at(int32(s.hand)); c.used {
			end := s.end(c)
			if end <= floor && s.prolong(int32(s.hand), now) {
				end = s.end(c)
			}
			if end <= floor {
				s.drop(int32(s.hand))
			} else {
				s.later = min(s.later, end)
			}
		}
		s.hand++
	}
}

// prolong makes a count last as long as the others of its key and window, and
// sends that to peers. It returns false if none lasts longer.
func (s *state) prolong(i int32, now time.Duration) bool {
	c := s.cells.at(i)
	carry := s.meta(c).Carry
	if c.Kind.Counts() {
		for o := s.first(c); o != nil; o = s.next(o) {
			if o.Kind.Counts() {
				carry = max(carry, s.meta(o).Carry)
			}
		}
	}
	if carry == s.meta(c).Carry {
		return false
	}
	s.extend(i, carry, now)
	return true
}

// extend makes a cell count for carry milliseconds after its window, and sends
// that to peers, also to the one that sent the cell.
func (s *state) extend(i int32, carry int64, now time.Duration) {
	c := s.cells.at(i)
	s.describe(c, &CellMeta{Carry: carry})
	c.source = 0
	s.touch(i, now)
}

// touch gives a cell a new version and moves it to the end of the changes.
func (s *state) touch(i int32, now time.Duration) {
	c := s.cells.at(i)
	if !c.delayed {
		s.unsents.at(i).since = now
	}
	s.unlist(i)
	s.version++
	c.version = s.version
	s.link(&s.changes, changeList, i, place{s.changes.last, none})
}

// unlist removes a cell from the changes and from the delayed increments.
func (s *state) unlist(i int32) {
	c := s.cells.at(i)
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
	c := s.cells.at(i)
	if c.delayed {
		return
	}
	s.unsents.at(i).since, c.delayed = now, true
	s.link(&s.delays, delayList, i, place{s.delays.last, none})
}

// release publishes the increments that were delayed for at least quiet.
func (s *state) release(now, quiet time.Duration) {
	for range 1 << 16 {
		i := s.delays.first
		if i == none || now-s.unsents.at(i).since < quiet {
			return
		}
		s.touch(i, now)
	}
}

// releaseDigested publishes the delayed increments of cells that are about to
// be compared: digests do not cover delayed increments.
func (s *state) releaseDigested(now time.Duration) {
	for i := s.delays.first; i != none; {
		next := s.unsents.at(i).delay.next
		if s.digested(s.cells.at(i)) {
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
	if hint != none && int(hint) < s.cells.used && s.cells.at(hint).version == version {
		return s.cells.at(hint).change.next
	}
	i := s.changes.last
	if i == none || s.cells.at(i).version <= version {
		return none
	}
	for p := i; p != none && s.cells.at(p).version > version; p = s.cells.at(p).change.prev {
		i = p
	}
	return i
}
