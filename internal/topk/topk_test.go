package topk_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/topk"
)

// exactly counts every key by the second.
type exactly struct {
	hits  map[int64]map[crdt.Key]uint64
	total map[int64]uint64
}

func (e *exactly) add(key crdt.Key, n uint64, at int64) {
	s := at / 1_000
	if e.hits[s] == nil {
		e.hits[s] = map[crdt.Key]uint64{}
	}
	e.hits[s][key] += n
	e.total[s] += n
}

// rate returns the hits a second of a key, and the greatest error of a Hot.
func (e *exactly) rate(key crdt.Key, capacity uint64, at int64) (rate, off uint64) {
	s, left := at/1_000, uint64(1_000-at%1_000)
	rate = e.hits[s][key] + e.hits[s-1][key]*left/1_000
	off = e.total[s]/capacity + e.total[s-1]/capacity*left/1_000 + 2 // rounded
	return rate, off
}

// TestSketchAgainstExact checks that the count of a Hot is never more than the
// truth, and less by no more than its bound, and that it has every key that is
// above a threshold by that bound.
func TestSketchAgainstExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.SampledFrom([]int{1, 2, 3, 8, 20}).Draw(t, "capacity")
		h := topk.New(capacity)
		exact := exactly{hits: map[int64]map[crdt.Key]uint64{}, total: map[int64]uint64{}}
		collide := rapid.Bool().Draw(t, "collide") // in the table
		gen := rapid.OneOf(rapid.Uint64Max(3), rapid.Uint64Max(40))
		at := rapid.Int64Range(0, 5_000).Draw(t, "start")
		keys := make([]crdt.Key, 41)
		for i := range keys {
			if keys[i] = crdt.Key(i); collide {
				keys[i] <<= 57
			}
		}
		for range rapid.IntRange(1, 200).Draw(t, "adds") {
			if rapid.IntRange(0, 9).Draw(t, "later") == 9 {
				at += rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 2_500)).Draw(t, "ms")
			}
			key := keys[gen.Draw(t, "key")]
			n := rapid.OneOf(rapid.Uint64Max(2), rapid.Uint64Max(1_000)).Draw(t, "hits")
			h.Add(key, n, at)
			exact.add(key, n, at)
		}
		at += rapid.Int64Range(0, 2_500).Draw(t, "after")
		threshold := rapid.Uint64Max(1_500).Draw(t, "threshold")
		above := h.Above(threshold, at)
		for i, hot := range above {
			if rate, off := exact.rate(hot.Key, uint64(capacity), at); hot.Rate > rate || hot.Rate+off < rate {
				t.Fatalf("key %x: %d a second, has %d, bound %d", hot.Key, hot.Rate, rate, off)
			}
			if i > 0 && above[i-1].Rate < hot.Rate || hot.Rate < threshold {
				t.Fatalf("above %d in order of rate: %+v", threshold, above)
			}
		}
		for _, key := range keys {
			rate, off := exact.rate(key, uint64(capacity), at)
			got := h.Rate(key, at)
			if got > rate || got+off < rate {
				t.Fatalf("key %x: %d a second, has %d, bound %d", key, got, rate, off)
			}
			named := slices.ContainsFunc(above, func(is topk.Entry) bool { return is.Key == key })
			if named && got < threshold || !named && got >= threshold && got > 0 {
				t.Fatalf("key %x with %d a second named %v, threshold %d", key, got, named, threshold)
			}
			if !named && rate >= threshold+off && rate > off {
				t.Fatalf("key %x has %d a second, and is not named above %d", key, rate, threshold)
			}
		}
	})
}

// TestSketchAmongMany: one hot key among a hundred thousand others is found,
// and nothing else is.
func TestSketchAmongMany(t *testing.T) {
	h := topk.New(128)
	rng := rand.New(rand.NewPCG(1, 2))
	hot := crdt.Key(1<<32 | 2)
	for at := range int64(3_000) {
		for range 100 {
			h.Add(crdt.Key(7<<32|rng.Uint64N(100_000)), 1, at)
		}
		h.Add(hot, 12, at)
	}
	above := h.Above(10_000, 3_000)
	if len(above) != 1 || above[0].Key != hot || above[0].Rate > 12_000 || above[0].Rate < 11_000 {
		t.Errorf("above 10,000 a second: %+v, want one with 12,000", above)
	}
	if rate := h.Rate(hot, 3_500); rate < 5_000 || rate > 6_000 {
		t.Errorf("%d a second half a second later, want 6,000 or a little less", rate)
	}
	if rate := h.Rate(hot, 5_000); rate != 0 || h.Above(1, 5_000) != nil {
		t.Errorf("%d a second two seconds later", rate)
	}
}

func TestSketchCorners(t *testing.T) {
	for _, capacity := range []int{-1, 0, 1, topk.MaxCapacity, 1 << 40} {
		h := topk.New(capacity)
		key := crdt.Key(3)
		for range 3 {
			h.Add(key, math.MaxUint64, 900)
			h.Add(key, math.MaxUint64, 1_000)
		}
		if rate := h.Rate(key, 0); rate < 1<<50 {
			t.Errorf("capacity %d: %d a second, want a great many", capacity, rate)
		}
		h.Add(4, 0, 1_000)
		h.Add(key, 1, math.MaxInt64)
		if rate := h.Rate(key, math.MaxInt64); rate != 1 {
			t.Errorf("capacity %d: %d a second at the end of time, want 1", capacity, rate)
		}
	}
	h := topk.New(1)
	h.Add(1, 5, 10)
	if h.Add(2, 0, 10); h.Rate(1, 10) != 5 {
		t.Error("no hits at all took the place of five")
	}
}

func TestSketchAllocatesNothing(t *testing.T) {
	h := topk.New(128)
	n, at := uint64(0), int64(0)
	if allocs := testing.AllocsPerRun(20_000, func() {
		n++
		at = int64(n / 10)
		h.Add(crdt.Key(n*0x9e3779b97f4a7c15), 1, at)
		h.Add(1, 1, at)
		h.Rate(1, at)
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkSketchAdd(b *testing.B) {
	for _, keys := range []uint64{1, 100, 100_000} {
		b.Run(map[uint64]string{1: "one key", 100: "100 keys", 100_000: "100,000 keys"}[keys], func(b *testing.B) {
			h := topk.New(128)
			rng := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			for at := int64(0); b.Loop(); at++ {
				h.Add(crdt.Key(rng.Uint64N(keys)), 1, at>>10)
			}
		})
	}
}
