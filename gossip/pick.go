package gossip

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/georld/rld/crdt"
)

// pick is a cell picked for a message, with the front of the name under which
// the peer receives it.
type pick struct {
	kind        Kind
	incarnation crdt.Incarnation
	key         crdt.Key
	cell        int32
}

// estimate returns the pick of the others' count of the key and window of a
// cell.
func (s *scope) estimate(i int32, c *cell) pick {
	return pick{Others, s.to.peer.ID, c.Key, i}
}

// pick returns the pick of a cell.
func (s *scope) pick(i int32, c *cell) pick {
	if c.Kind == Daemon && !s.to.local {
		return pick{RegionSum, s.self, c.Key, i}
	}
	return pick{c.Kind, s.written(c.Kind, c.Incarnation), c.Key, i}
}

// written returns the incarnation that a message has for that of a cell: a sum
// of the sender's or the receiver's region is under that daemon.
func (s *scope) written(k Kind, id crdt.Incarnation) crdt.Incarnation {
	switch {
	case k == RegionSum && id == s.ownRegion:
		return s.self
	case k == RegionSum && id == s.to.incarnation:
		return s.to.peer.ID
	}
	return id
}

// compare orders picks by the names that the peer receives.
func (s *state) compare(a, b *pick) int {
	switch {
	case a.kind != b.kind:
		return cmp.Compare(a.kind, b.kind)
	case a.incarnation != b.incarnation:
		return cmp.Compare(a.incarnation, b.incarnation)
	case a.key != b.key:
		return cmp.Compare(a.key, b.key)
	}
	return cmp.Compare(s.cells.at(a.cell).Window, s.cells.at(b.cell).Window)
}

// pickOrder sorts picks as numbers: the place of the writer among the writers,
// the front of the key, and the place of the pick. It keeps its memory.
type pickOrder struct {
	writers []writer
	numbers []uint64
	sorted  []pick
}

// writer is what picks of one writer have in common, and how many writers come
// before it.
type writer struct {
	kind        Kind
	incarnation crdt.Incarnation
	before      uint64
}

// maxWriters bounds the writers that a number has room for.
const maxWriters = 64

// sort returns the picks in their order, valid until the next call.
func (o *pickOrder) sort(s *state, picked []pick) []pick {
	o.writers, o.numbers = o.writers[:0], o.numbers[:0]
	for i := range picked {
		o.numbers = append(o.numbers, uint64(o.writer(&picked[i])))
	}
	if len(o.writers) > maxWriters {
		o.sorted = append(o.sorted[:0], picked...)
		slices.SortFunc(o.sorted, func(a, b pick) int { return s.compare(&a, &b) })
		return o.sorted
	}
	place := bits.Len(uint(len(picked)))
	front := uint64(1)<<58 - 1<<place
	o.rank()
	for i, w := range o.numbers {
		o.numbers[i] = o.writers[w].before<<58 | uint64(picked[i].key)>>6&front | uint64(i)
	}
	slices.Sort(o.numbers)
	o.sorted = o.sorted[:0]
	for i, n := range o.numbers {
		o.sorted = append(o.sorted, picked[n&(1<<place-1)])
		for i > 0 && o.numbers[i-1]>>place == n>>place && s.compare(&o.sorted[i-1], &o.sorted[i]) > 0 {
			o.sorted[i-1], o.sorted[i] = o.sorted[i], o.sorted[i-1]
			i--
		}
	}
	return o.sorted
}

// writer returns the number of the writer of a pick.
func (o *pickOrder) writer(p *pick) int {
	for i := len(o.writers) - 1; i >= 0; i-- {
		if w := &o.writers[i]; w.incarnation == p.incarnation && w.kind == p.kind {
			return i
		}
	}
	if len(o.writers) <= maxWriters {
		o.writers = append(o.writers, writer{kind: p.kind, incarnation: p.incarnation})
	}
	return len(o.writers) - 1
}

// rank counts the writers that come before each.
func (o *pickOrder) rank() {
	for i := range o.writers {
		w := &o.writers[i]
		for _, b := range o.writers {
			if b.kind < w.kind || b.kind == w.kind && b.incarnation < w.incarnation {
				w.before++
			}
		}
	}
}
