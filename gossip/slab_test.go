package gossip

import (
	"testing"

	"pgregory.net/rapid"
)

// TestMetas: a number keeps its description for as long as a cell has it, and
// descriptions that no cell has are forgotten.
func TestMetas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m metas
		var taken []int32
		is := map[int32]CellMeta{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if n := len(taken); n > 0 && rapid.Bool().Draw(t, "release") {
				i := rapid.IntRange(0, n-1).Draw(t, "which")
				m.release(taken[i])
				taken[i] = taken[n-1]
				taken = taken[:n-1]
			} else {
				meta := CellMeta{
					Rule: rapid.Uint64Range(1, 3).Draw(t, "rule"), WindowLength: 1, Carry: rapid.Int64Range(0, 1).Draw(t, "carry"),
				}
				i := m.take(meta)
				taken, is[i] = append(taken, i), meta
			}
			held := map[CellMeta]int32{}
			for _, i := range taken {
				if got := m.all[i].CellMeta; got != is[i] {
					t.Fatalf("%d is %+v, want %+v", i, got, is[i])
				}
				if other, ok := held[is[i]]; ok && other != i {
					t.Fatalf("%d and %d are both %+v", i, other, is[i])
				}
				held[is[i]] = i
			}
			if len(m.numbers) != len(held) || len(m.all) != len(m.free)+len(held) {
				t.Fatalf("%d numbers and %d free of %d, for %d descriptions", len(m.numbers), len(m.free), len(m.all), len(held))
			}
		}
	})
}
