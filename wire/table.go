package wire

import (
	"slices"

	"github.com/georld/rld/gossip"
)

// table numbers values in the order of their first use.
type table[V comparable] struct {
	values []V
	index  map[V]int // nil while a linear search is faster
}

// maxWalk is the number of values that a table searches linearly, and firstRoom
// its initial capacity.
const (
	maxWalk   = 16
	firstRoom = 4
)

// emptied returns the table without values. It keeps the memory of a small one.
func (t *table[V]) emptied() table[V] {
	if cap(t.values) > 2*maxWalk {
		return table[V]{}
	}
	return table[V]{values: t.values[:0]}
}

// find returns the number of v, -1 for none.
func (t *table[V]) find(v *V) int {
	if t.index != nil {
		if i, ok := t.index[*v]; ok {
			return i
		}
		return -1
	}
	for i := range t.values {
		if t.values[i] == *v {
			return i
		}
	}
	return -1
}

// add adds v, which the table lacks, and returns its number.
func (t *table[V]) add(v *V) int {
	i := len(t.values)
	if cap(t.values) == 0 {
		t.values = slices.Grow(t.values, firstRoom)
	}
	t.values = append(t.values, *v)
	switch {
	case t.index != nil:
		t.index[*v] = i
	case i == maxWalk:
		t.index = make(map[V]int, 4*maxWalk)
		for i, v := range t.values {
			t.index[v] = i
		}
	}
	return i
}

// cellMeta is a row of the table of descriptions: a description with its
// number, or the number of one that the receiver knows.
type cellMeta struct {
	gossip.CellMeta
	gossip.MetaRef
}

// metaOf returns the row of a cell, and its window there.
func metaOf(c *gossip.Cell) (cellMeta, int64) {
	if c.Known {
		return cellMeta{MetaRef: c.MetaRef}, c.PlaceInBlock()
	}
	return cellMeta{c.CellMeta, c.MetaRef}, c.Window
}

// sameMeta reports whether two cells have the same row.
func sameMeta(a, b *gossip.Cell) bool {
	return a.MetaRef == b.MetaRef && (a.Known || a.CellMeta == b.CellMeta)
}

// rows is the table of descriptions of a frame.
type rows struct {
	table[cellMeta]
	latest []int64 // for each row the window of its latest cell
}

// emptied returns the table without rows. It keeps the memory of a small one.
func (t *rows) emptied() rows {
	latest := t.latest[:0]
	if cap(latest) > 2*maxWalk {
		latest = nil
	}
	return rows{table: t.table.emptied(), latest: latest}
}

// add adds a row with the window of its first cell and returns its number. In a
// full table it replaces the last row.
func (t *rows) add(s *cellMeta, window int64) int {
	if i := len(t.values) - 1; i == maxRows-1 {
		delete(t.index, t.values[i])
		t.values[i], t.latest[i], t.index[*s] = *s, window, i
		return i
	}
	if cap(t.latest) == 0 {
		t.latest = make([]int64, 0, firstRoom)
	}
	t.latest = append(t.latest, window)
	return t.table.add(s)
}
