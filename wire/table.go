package wire

import "slices"

// table numbers values in the order in which they are first met.
type table[V comparable] struct {
	values []V
	index  map[V]int // nil while a walk is faster
}

// maxWalk is how many values a table holds before it is indexed, and firstRoom
// for how many it has room from the start.
const (
	maxWalk   = 16
	firstRoom = 4
)

// number returns the number of v and whether it is met for the first time.
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
