package crdt

import (
	"fmt"
	"slices"
	"strings"
)

// value is what a slot holds: a lattice whose zero value is its bottom.
type value[V any] interface {
	comparable
	join(V) V
	pn() PN // the value as digests see it
}

type cell[V value[V]] struct {
	incarnation Incarnation
	value       V
}

// table maps slots to values and joins them slot by slot. Invariants: slots
// strictly ascend, no value is zero, there are at most MaxIncarnations cells. Hence
// equal maps are equal slices.
type table[V value[V]] struct{ cells []cell[V] }

// find returns where the slot is, or where it belongs.
func (t *table[V]) find(s Incarnation) (int, bool) {
	low, high := 0, len(t.cells)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if t.cells[mid].incarnation < s {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, low < len(t.cells) && t.cells[low].incarnation == s
}

func (t *table[V]) get(s Incarnation) V {
	if i, ok := t.find(s); ok {
		return t.cells[i].value
	}
	var zero V
	return zero
}

// put joins v into the slot's value.
func (t *table[V]) put(s Incarnation, v V) (changed bool, err error) {
	var zero V
	if v == zero {
		return false, nil
	}
	i, ok := t.find(s)
	if ok {
		was := t.cells[i].value
		t.cells[i].value = was.join(v)
		return t.cells[i].value != was, nil
	}
	if len(t.cells) >= MaxIncarnations {
		return false, &IncarnationsError{Held: len(t.cells), Added: 1}
	}
	t.cells = slices.Insert(t.cells, i, cell[V]{s, v})
	return true, nil
}

// join joins u in, slot by slot, in the memory t has unless slots are new.
func (t *table[V]) join(u *table[V]) (changed bool, err error) {
	added := t.lacking(u)
	if added == 0 {
		return t.update(u), nil
	}
	if len(t.cells)+added > MaxIncarnations {
		return false, &IncarnationsError{Held: len(t.cells), Added: added}
	}
	// Merge from the back, so that each cell is moved once.
	i, j := len(t.cells)-1, len(u.cells)-1
	t.cells = slices.Grow(t.cells, added)[:len(t.cells)+added]
	for k := len(t.cells) - 1; j >= 0; k-- {
		switch {
		case i < 0 || t.cells[i].incarnation < u.cells[j].incarnation:
			t.cells[k] = u.cells[j]
			j--
		case t.cells[i].incarnation > u.cells[j].incarnation:
			t.cells[k] = t.cells[i]
			i--
		default:
			t.cells[k] = cell[V]{u.cells[j].incarnation, t.cells[i].value.join(u.cells[j].value)}
			i--
			j--
		}
	}
	return true, nil
}

// lacking counts the slots of u that t has not.
func (t *table[V]) lacking(u *table[V]) int {
	n, i := 0, 0
	for j := range u.cells {
		for i < len(t.cells) && t.cells[i].incarnation < u.cells[j].incarnation {
			i++
		}
		if i == len(t.cells) || t.cells[i].incarnation != u.cells[j].incarnation {
			n++
		}
	}
	return n
}

// update joins u in, which has no slot that t lacks.
func (t *table[V]) update(u *table[V]) (changed bool) {
	i := 0
	for j := range u.cells {
		for t.cells[i].incarnation != u.cells[j].incarnation {
			i++
		}
		was := t.cells[i].value
		t.cells[i].value = was.join(u.cells[j].value)
		changed = changed || t.cells[i].value != was
	}
	return changed
}

// delta returns the cells of t that would change since, in memory of its own;
// no memory when there are none.
func (t *table[V]) delta(since *table[V]) table[V] {
	var d table[V]
	i := 0
	for _, c := range t.cells {
		for i < len(since.cells) && since.cells[i].incarnation < c.incarnation {
			i++
		}
		if i < len(since.cells) && since.cells[i].incarnation == c.incarnation {
			if had := since.cells[i].value; had.join(c.value) == had {
				continue
			}
		}
		d.cells = append(d.cells, c)
	}
	return d
}

// covers reports whether joining u would change nothing.
func (t *table[V]) covers(u *table[V]) bool {
	for _, c := range u.cells {
		if had := t.get(c.incarnation); had.join(c.value) != had {
			return false
		}
	}
	return true
}

func (t *table[V]) equal(u *table[V]) bool { return slices.Equal(t.cells, u.cells) }

func (t *table[V]) clone() table[V] { return table[V]{slices.Clone(t.cells)} }

// digest sums up the mixes of all cells.
func (t *table[V]) digest(k Key, window int64) Digest {
	var d Digest
	for _, c := range t.cells {
		d = d.Plus(CellDigest(CellID{k, window, c.incarnation}, c.value.pn()))
	}
	return d
}

// describe prints a total and the cells, slots in hexadecimal.
func (t *table[V]) describe(total uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d {", total)
	for i, c := range t.cells {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%x: %v", uint64(c.incarnation), c.value)
	}
	b.WriteByte('}')
	return b.String()
}

// Max is where counts saturate. It is far beyond what anybody admits, and so
// far from the end of the numbers that a greater one in a message can only be
// rubbish: readers of messages refuse it.
const Max = 1 << 62

// AddSat adds two counts and stops at Max.
func AddSat(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return min(sum, Max)
	}
	return Max
}
