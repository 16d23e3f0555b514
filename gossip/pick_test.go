package gossip

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

// Picks are sorted by numbers that hold the front of their names alone, and by
// their names where there are more writers than a number has room for.
func TestPickOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newState(1<<10, 0)
		writers := rapid.IntRange(1, 2*maxWriters).Draw(t, "writers")
		var picked []pick
		for i := range rapid.IntRange(0, 200).Draw(t, "picks") {
			id := CellID{
				Key:         crdt.Key{Hi: rapid.Uint64Range(0, 3).Draw(t, "hi") << rapid.IntRange(0, 62).Draw(t, "by"), Lo: uint64(i)},
				Window:      int64(i % 7),
				Kind:        Kind(rapid.IntRange(0, 1).Draw(t, "kind")),
				Incarnation: crdt.Incarnation(rapid.IntRange(1, writers).Draw(t, "writer")),
			}
			at := s.cells.add(cell{Cell: Cell{CellID: id}, used: true})
			picked = append(picked, pick{id.Kind, id.Incarnation, id.Key.Hi, at})
		}
		var o pickOrder
		o.sort(&s, []pick{{kind: 1, incarnation: 9}}) // memory that is used again
		got := o.sort(&s, picked)
		want := slices.SortedFunc(slices.Values(picked), func(a, b pick) int {
			return s.cells.at(a.cell).CellID.Compare(s.cells.at(b.cell).CellID)
		})
		if !slices.Equal(got, want) {
			t.Fatalf("sorted %v to %v, want %v", picked, got, want)
		}
	})
}
