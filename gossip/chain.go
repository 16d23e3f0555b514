package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// of visits the cells of a key, in no order.
func (s *state) of(k crdt.Key, visit func(i int32, c *cell)) {
	s.chain(s.keyOf(k), visit)
}

// chain visits the cells of the key at an index, in no order.
func (s *state) chain(key int32, visit func(i int32, c *cell)) {
	if key == none {
		return
	}
	for i := s.keys.at(key).chain.first; i != none; {
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

// sum returns the hits that the daemons of the own region counted for a key and
// window, and the description of the sum.
func (s *state) sum(key int32, window int64) (v crdt.Sum, meta CellMeta) {
	s.chain(key, func(_ int32, c *cell) {
		if c.Kind != Daemon || c.Window != window {
			return
		}
		v.P, v.N = sat.Add(v.P, c.Value.P), sat.Add(v.N, c.Value.N)
		is := s.meta(c)
		carry, regional := max(meta.Carry, is.Carry), meta.Regional || is.Regional
		meta = *is
		meta.Carry, meta.Regional = carry, regional
	})
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
	s.carry(c, max(s.meta(c).Carry, meta.Carry))
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

// resend gives a cell a new version. For the sum of the own region, it is one
// of the cells of the sum.
func (s *state) resend(now time.Duration, id CellID, region crdt.Incarnation) {
	if i := s.find(id); i != none && id.Incarnation != region {
		s.touch(i, now)
		return
	}
	at := s.keyOf(id.Key)
	if id.Kind != RegionSum || id.Incarnation != region || at == none {
		return
	}
	for i := s.keys.at(at).chain.first; i != none; i = s.cells.at(i).ofKey.next {
		if c := s.cells.at(i); c.Kind == Daemon && c.Window == id.Window {
			s.touch(i, now)
			return
		}
	}
}
