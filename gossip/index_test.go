package gossip

import (
	"testing"

	"pgregory.net/rapid"
)

// TestIndexIsAMap holds an index against a map: under names that come and go,
// most of which share their hashes' low bits, both find the same.
func TestIndexIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			x     index
			names = map[int32]uint32{} // the hash of each number
			want  = map[uint32][]int32{}
			hash  = rapid.Custom(func(t *rapid.T) uint32 {
				return rapid.Uint32Range(0, 3).Draw(t, "high")<<16 | rapid.Uint32Range(0, 20).Draw(t, "low")
			})
		)
		next := int32(0)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				h := hash.Draw(t, "hash")
				x.add(h, next)
				names[next] = h
				want[h] = append(want[h], next)
				next++
			},
			"remove": func(t *rapid.T) {
				n := rapid.Int32Range(0, max(next-1, 0)).Draw(t, "number")
				if h, ok := names[n]; ok {
					x.remove(h, n)
					delete(names, n)
				}
			},
			"": func(t *rapid.T) {
				if x.count != len(names) {
					t.Fatalf("count %d, want %d", x.count, len(names))
				}
				for h, numbers := range want {
					for _, n := range numbers {
						got := x.find(h, func(i int32) bool { return i == n })
						if _, ok := names[n]; ok != (got == n) {
							t.Fatalf("number %d of hash %#x: found %d, want it there: %v", n, h, got, ok)
						}
					}
				}
			},
		})
	})
}
