package crdt

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSearch: the place is that of a binary search, whatever the incarnations.
func TestSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 200), rapid.Uint64Min(1<<64-200))
		incarnation := rapid.Map(id, func(v uint64) Incarnation { return Incarnation(v) })
		ids := rapid.SliceOfN(incarnation, 0, 300).Draw(t, "ids")
		slices.Sort(ids)
		ids = slices.Compact(ids)
		for _, id := range append(slices.Clone(ids), incarnation.Draw(t, "id")) {
			at, found := Search(ids, id)
			if want, is := slices.BinarySearch(ids, id); at != want || found != is {
				t.Fatalf("%v is at %d (%t), want %d (%t)", id, at, found, want, is)
			}
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	ids := make([]Incarnation, 1000)
	for i := range ids {
		ids[i] = Incarnation(uint64(i+1) * 0x9e3779b97f4a7c15)
	}
	order := slices.Clone(ids)
	slices.Sort(ids)
	for _, s := range []struct {
		name string
		of   func([]Incarnation, Incarnation) (int, bool)
	}{{"guess", Search}, {"halves", slices.BinarySearch[[]Incarnation]}} {
		b.Run(s.name, func(b *testing.B) {
			for i := range b.N {
				s.of(ids, order[i%len(order)])
			}
		})
	}
}
