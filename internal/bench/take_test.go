package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

func TestDecisionsOnLiveKeysDoNotAllocate(t *testing.T) {
	const keys = 1_000
	w := newWorld(keys)
	a := w.asker(1)
	if n := testing.AllocsPerRun(10_000, func() { a.ask(a.rng.IntN(keys)) }); n != 0 {
		t.Errorf("%v allocations a decision, want none", n)
	}
}

func TestTimeOfAWorldNeverGoesBack(t *testing.T) {
	w := newWorld(10)
	long, short := w.asker(1), w.asker(2)
	for i := range 10 {
		long.ask(i)
	}
	w.leave(long)
	w.leave(short)
	if next := w.asker(3); next.at != long.at {
		t.Errorf("the next asker starts at %v, want %v, where the last was", next.at, long.at)
	}
}

func TestBareHashesWhatTheEngineHashes(t *testing.T) {
	b := newBare(1_000)
	if len(b.counts) != 1_000 {
		t.Fatalf("%d keys in the map, want 1,000", len(b.counts))
	}
	b.key(42)
	// Grid, number of entries, and three texts, each behind its length.
	want := 8 + 1 + len("\x05bench") + len("\x04user") + len("\x0buser-00002a")
	if len(b.text) != want {
		t.Errorf("hashes %d bytes, want %d", len(b.text), want)
	}
	for i := range 1_000 {
		b.read(i)
	}
	if b.sum != 1_000 {
		t.Errorf("1,000 reads found %d, want 1 each", b.sum)
	}
}

func TestHeapGrowthCountsWhatIsBuilt(t *testing.T) {
	const size = 8 << 20
	got := heapGrowth(func() any { return make([]byte, size) })
	if got < size-size/8 || got > size+size/8 {
		t.Errorf("the heap grew by %g bytes for %d", got, size)
	}
}

// BenchmarkTake is the lines take-* for benchstat and for profiles.
func BenchmarkTake(b *testing.B) {
	for _, keys := range []int{1_000, 1_000_000} {
		w, other := newWorld(keys), newBare(keys)
		runtime.GC()
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			b.ReportAllocs()
			a := w.asker(1)
			defer w.leave(a)
			for b.Loop() {
				a.random(keys, 1)
			}
		})
		b.Run(fmt.Sprintf("keys=%d/parallel", keys), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				a := w.asker(rand.Uint64())
				for pb.Next() {
					a.random(keys, 1)
				}
			})
		})
		b.Run(fmt.Sprintf("keys=%d/bare", keys), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				other.read(other.rng.IntN(keys))
			}
		})
	}
}
