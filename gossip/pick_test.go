package gossip

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

// Picks are sorted by numbers that hold the front of their names alone, and by
// their names where there are more writers than a number has room for.
func TestPickOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newState(1<<10, 0)
		many := rapid.Bool().Draw(t, "many") // more writers than a number has room for
		least := 0
		if many {
			least = 2 * maxWriters
		}
		var picked []pick
		for i := range rapid.IntRange(least, 200).Draw(t, "picks") {
			writer := rapid.IntRange(1, 5).Draw(t, "writer")
			if many {
				writer = i
			}
			id := CellID{
				Key:         crdt.Key(rapid.Uint64Range(0, 3).Draw(t, "key")<<rapid.IntRange(9, 62).Draw(t, "by") | uint64(i)),
				Window:      int64(i % 7),
				Kind:        Kind(rapid.IntRange(0, 1).Draw(t, "kind")),
				Incarnation: crdt.Incarnation(writer),
			}
			at := s.cells.add(cell{Key: id.Key, Window: id.Window, Kind: id.Kind, Incarnation: id.Incarnation, used: true})
			picked = append(picked, pick{id.Kind, id.Incarnation, id.Key, at})
		}
		var o pickOrder
		o.sort(&s, []pick{{kind: 1, incarnation: 9}}) // memory that is used again
		got := o.sort(&s, picked)
		want := slices.SortedFunc(slices.Values(picked), func(a, b pick) int {
			return s.cells.at(a.cell).id().Compare(s.cells.at(b.cell).id())
		})
		if !slices.Equal(got, want) {
			t.Fatalf("sorted %v to %v, want %v", picked, got, want)
		}
	})
}

// TestSumsAreInTheOrderOfTheirNames: a message to a daemon that lost the sums
// of its region has them, and those of the sender's region, in the order of the
// incarnations that stand for the regions in it.
func TestSumsAreInTheOrderOfTheirNames(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	found := 0
	r.sending = func(_ *member, m *Message) {
		writers := make(map[crdt.Incarnation]bool)
		for _, c := range m.Cells {
			writers[c.Incarnation] = true
		}
		found += len(writers) / 2
		if !slices.IsSortedFunc(m.Cells, func(a, b Cell) int { return a.CellID.Compare(b.CellID) }) {
			t.Errorf("%v sends %v out of order", m.From, m.Cells)
		}
	}
	for _, name := range []string{"a1", "b1"} {
		for k := range 4 {
			r.add(name, k, 1)
		}
	}
	r.run(3 * time.Second)
	for _, name := range []string{"a1", "b1"} { // the order of one of them is not that of the regions
		r.restart(r.of(name))
		r.run(3 * time.Second)
	}
	if found < 2 {
		t.Errorf("%d messages have sums of both regions, want one from each", found)
	}
}
