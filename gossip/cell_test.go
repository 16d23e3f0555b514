package gossip

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/crdt/crdttest"
)

// cellLattice returns the lattice of the cells that an engine keeps, by name.
// Its join is the merge of a message.
func cellLattice() crdttest.Lattice[map[CellID]Cell] {
	covers := func(a, b Cell) bool {
		if b.Kind == RegionSum {
			return a.Value.P > b.Value.P || a.Value.P == b.Value.P && a.Value.N >= b.Value.N
		}
		return a.Value.P >= b.Value.P && a.Value.N >= b.Value.N
	}
	type cells = map[CellID]Cell
	return crdttest.Lattice[cells]{
		Join: func(into, from *cells) (changed bool) {
			for id, in := range *from {
				c, ok := (*into)[id]
				if !ok {
					c = Cell{CellID: id}
				}
				is := c.Kind.join(c.Value, in.Value)
				changed = changed || is != c.Value
				c.Value = is
				(*into)[id] = c
			}
			return changed
		},
		Covers: func(a, b *cells) bool {
			for id, c := range *b {
				if have := (*a)[id]; !covers(have, c) {
					return false
				}
			}
			return true
		},
		Equal: func(a, b *cells) bool { return maps.Equal(*a, *b) },
		Clone: func(c *cells) cells { return maps.Clone(*c) },
		Show:  func(c *cells) string { return fmt.Sprint(slices.Collect(maps.Values(*c))) },
		Digest: func(c *cells) uint64 {
			d := crdt.Digest(0)
			for id, v := range *c {
				// Cells of two kinds never share a digest in an engine.
				id := crdt.CellID{Key: id.Key, Window: id.Window, Incarnation: id.Incarnation + crdt.Incarnation(id.Kind)<<8}
				d = d.Replace(id, crdt.PN{}, v.Value)
			}
			return uint64(d)
		},
	}
}

// TestCellLaws proves the laws of a join of the cells that replication merges:
// counts of daemons, sums of regions, and rights.
func TestCellLaws(t *testing.T) {
	crdttest.Laws(t, cellLattice(), rapid.Custom(func(t *rapid.T) map[CellID]Cell {
		all := map[CellID]Cell{}
		for range rapid.IntRange(0, 4).Draw(t, "cells") {
			id := CellID{
				Window:      rapid.Int64Range(0, 1).Draw(t, "window"),
				Kind:        rapid.SampledFrom([]Kind{Daemon, RegionSum, Given, Transferred, Received}).Draw(t, "kind"),
				Incarnation: crdt.Incarnation(rapid.Uint64Range(1, 2).Draw(t, "incarnation")),
			}
			p := rapid.Uint64Range(1, 4).Draw(t, "p")
			all[id] = Cell{CellID: id, Value: crdt.PN{P: p, N: rapid.Uint64Range(0, p).Draw(t, "n")}}
		}
		return all
	}))
}

// TestCellTakesTwoLines: a cell shares no cache line with another one.
func TestCellTakesTwoLines(t *testing.T) {
	if size := unsafe.Sizeof(cell{}); size != 128 {
		t.Errorf("%d bytes", size)
	}
}
