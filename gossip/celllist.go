package gossip

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
