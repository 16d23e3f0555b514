package wire

import "slices"

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

// number returns the number of v and whether this is its first use.
func (t *table[V]) number(v V) (int, bool) {
	if t.index != nil {
		if i, ok := t.index[v]; ok {
			return i, false
		}
	} else {
		for i := range t.values {
			if t.values[i] == v {
				return i, false
			}
		}
	}
	i := len(t.values)
	if cap(t.values) == 0 {
		t.values = slices.Grow(t.values, firstRoom)
	}
	t.values = append(t.values, v)
	switch {
	case t.index != nil:
		t.index[v] = i
	case i == maxWalk:
		t.index = make(map[V]int, 4*maxWalk)
		for i, v := range t.values {
			t.index[v] = i
		}
	}
	return i, true
}
