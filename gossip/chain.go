package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// of visits the cells of a key, the latest window first.
func (s *state) of(k crdt.Key, visit func(i int32, c *cell)) {
	s.chain(s.keyOf(k), visit)
}

// chain visits the cells of the key at an index, the latest window first.
func (s *state) chain(key int32, visit func(i int32, c *cell)) {
	for i := s.firstOf(key); i != none; {
		c := s.cells.at(i)
		visit(i, c)
		i = c.ofKey.next
	}
}

// counts visits the cells of a key that count hits at a daemon of the region:
// neither cells about rights, nor the sum of the region.
func (s *state) counts(key int32, region crdt.Incarnation, visit func(*cell)) {
	s.chain(key, func(_ int32, c *cell) {
		if c.Kind == Daemon || c.Kind == RegionSum && c.Incarnation != region {
			visit(c)
		}
	})
}

// placeOf returns the place of a new cell in the list of its key: before the
// others of its window. Most windows are the latest or, when cells are sent
// again, the earliest.
func (s *state) placeOf(chain *cellList, window int64) place {
	if chain.last != none && s.cells.at(chain.last).Window > window {
		return place{chain.last, none}
	}
	at := place{none, chain.first}
	for at.next != none && s.cells.at(at.next).Window > window {
		at = place{at.next, s.cells.at(at.next).ofKey.next}
	}
	return at
}

// first returns the first cell of the key and window of a cell, next the
// following one, nil for none.
func (s *state) first(c *cell) *cell {
	for c.ofKey.prev != none && s.cells.at(c.ofKey.prev).Window == c.Window {
		c = s.cells.at(c.ofKey.prev)
	}
	return c
}

func (s *state) next(c *cell) *cell {
	if c.ofKey.next == none || s.cells.at(c.ofKey.next).Window != c.Window {
		return nil
	}
	return s.cells.at(c.ofKey.next)
}

// firstOf returns the first cell of a key, none for none.
func (s *state) firstOf(key int32) int32 {
	if key == none {
		return none
	}
	return s.keys.at(key).chain.first
}

// from returns the first cell of a window or of an earlier one, from a cell of
// the key on, none for none.
func (s *state) from(i int32, window int64) int32 {
	for i != none && s.cells.at(i).Window > window {
		i = s.cells.at(i).ofKey.next
	}
	return i
}

// part returns a cell that a daemon of the own region counted in a window, from
// a cell of the key on, which is that of the window or of an earlier one; none
// for none.
func (s *state) part(i int32, window int64) int32 {
	for ; i != none && s.cells.at(i).Window == window; i = s.cells.at(i).ofKey.next {
		if s.cells.at(i).Kind == Daemon {
			return i
		}
	}
	return none
}

// sum returns the hits that the daemons of the own region counted for the key
// and window of a cell, and the description of the sum.
func (s *state) sum(of *cell) (v crdt.Sum, meta CellMeta) {
	for c := s.first(of); c != nil; c = s.next(c) {
		if c.Kind != Daemon {
			continue
		}
		v.P, v.N = sat.Add(v.P, c.Value.P), sat.Add(v.N, c.Value.N)
		regional := meta.Regional
		meta = s.meta(c).join(&meta)
		meta.Regional = meta.Regional || regional
	}
	return v, meta
}

// ensure returns the cell of a name and makes it if there is none; none if
// there is no room.
func (s *state) ensure(id CellID, meta CellMeta) int32 {
	i := s.find(id)
	if i == none {
		return s.add(id, meta)
	}
	c := s.cells.at(i)
	s.describe(c, &meta)
	return i
}

// keep makes the cells of a key count for carry milliseconds after their
// windows.
func (s *state) keep(k crdt.Key, carry int64, now time.Duration) {
	s.of(k, func(i int32, c *cell) {
		if s.meta(c).Carry < carry {
			s.extend(i, carry, now)
		}
	})
}

// The lists that a cell may be in.
const (
	keyList    = iota // cells of one key, the latest window first
	changeList        // changes, versions ascending
	delayList         // delayed increments, the oldest first
)

// cellList is a doubly linked list of cells, by index: none and none if it is
// empty.
type cellList struct{ first, last int32 }

// place is the position of a cell in a list: its neighbors, none at an end. It
// has no meaning while the cell is not in that list.
type place struct{ prev, next int32 }

// place returns the place of a cell in a list of a kind.
func (s *state) place(kind int, i int32) *place {
	switch kind {
	case changeList:
		return &s.cells.at(i).change
	case keyList:
		return &s.cells.at(i).ofKey
	}
	return &s.unsents.at(i).delay
}

// link inserts a cell into a list of a kind at a place.
func (s *state) link(l *cellList, kind int, i int32, at place) {
	*s.place(kind, i) = at
	s.join(l, kind, place{at.prev, i}, place{i, at.next})
}

// unlink removes a cell from a list of a kind.
func (s *state) unlink(l *cellList, kind int, i int32) {
	at := *s.place(kind, i)
	s.join(l, kind, at, at)
}

// join makes before.next follow before.prev, and after.prev precede after.next.
func (s *state) join(l *cellList, kind int, before, after place) {
	if before.prev != none {
		s.place(kind, before.prev).next = before.next
	} else {
		l.first = before.next
	}
	if after.next != none {
		s.place(kind, after.next).prev = after.prev
	} else {
		l.last = after.prev
	}
}
