package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// batch is how many decisions are made between two looks at the clock.
const batch = 1_000

// allocRun is how many decisions the allocations are counted over.
const allocRun = 1_000_000

// timed calls do, which makes n decisions, until d has passed, and returns
// the nanoseconds a decision.
func timed(d time.Duration, do func(n int)) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := time.Now()
	for n := batch; ; n += batch {
		do(batch)
		if took := time.Since(start); took >= d {
			return float64(took) / float64(n)
		}
	}
}

// random asks n random users.
func (a *asker) random(keys, n int) {
	for range n {
		a.ask(a.rng.IntN(keys))
	}
}

// decide returns the nanoseconds a decision on one core.
func (w *world) decide(d time.Duration, seed uint64) float64 {
	a := w.asker(seed)
	defer w.leave(a)
	return timed(d, func(n int) { a.random(w.keys, n) })
}

// decideTogether returns the decisions a second of goroutines that each have
// a thread of their own.
func (w *world) decideTogether(d time.Duration, goroutines int) float64 {
	askers := make([]*asker, goroutines)
	rates := make([]float64, goroutines)
	var all errgroup.Group
	for i := range askers {
		askers[i] = w.asker(uint64(i + 1))
		all.Go(func() error {
			return catch(func() {
				rates[i] = float64(time.Second) / timed(d, func(n int) { askers[i].random(w.keys, n) })
			})
		})
	}
	check(all.Wait())
	sum := 0.0
	for i, a := range askers {
		w.leave(a)
		sum += rates[i]
	}
	return sum
}

// reads returns the nanoseconds that a hash and a read of the map take.
func (b *bare) reads(d time.Duration) float64 {
	return timed(d, func(n int) {
		for range n {
			b.read(b.rng.IntN(len(b.counts)))
		}
	})
}

// measureTake measures a decision of random keys on one core.
func measureTake(keys int) measure {
	return func(ctx context.Context, b *bench) outcome {
		w, other := newWorld(keys), newBare(keys)
		runtime.GC()
		readings := alternate(ctx, b.rounds(5),
			func() float64 { return w.decide(b.loop, 1) },
			func() float64 { return other.reads(b.loop) },
		)
		return compare(nanoseconds, least, readings, "hash + one map read")
	}
}

// measureCores measures how two cores share a million keys.
func measureCores(ctx context.Context, b *bench) outcome {
	w := newWorld(1_000_000)
	runtime.GC()
	readings := alternate(ctx, b.rounds(5),
		func() float64 { return w.decideTogether(b.loop, 2) },
		func() float64 { return w.decideTogether(b.loop, 1) },
	)
	return compare(perSecond, most, readings, "one core")
}

// measureAllocs counts what deciding on live keys leaves to the collector.
func measureAllocs(ctx context.Context, b *bench) outcome {
	w, other := newWorld(1_000_000), newBare(1_000)
	a := w.asker(1)
	a.ask(0) // The first call makes the memory of all.
	readings := alternate(ctx, b.rounds(5),
		func() float64 {
			return mallocs(func() { a.random(w.keys, allocRun) })
		},
		func() float64 {
			return mallocs(func() {
				for i := range allocRun {
					other.read(i % len(other.counts))
				}
			})
		},
	)
	return compare(allocations, least, readings, "hash + one map read")
}

// mallocs returns how many objects f allocated. Nothing else may run: other
// goroutines would be counted.
func mallocs(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs)
}

// memorySizes are the numbers of keys to measure: tables that double are
// fullest just before they grow and emptiest just after.
var memorySizes = [...]int{800_000, 1_000_000, 1_200_000}

// measureMemory measures how the heap grows by a live key, the worst of the
// sizes.
func measureMemory(ctx context.Context, _ *bench) outcome {
	worst := outcome{Unit: memory, BesideWhat: "map of hash to count"}
	for _, keys := range memorySizes {
		check(ctx.Err())
		mine := heapGrowth(func() any { return newWorld(keys) }) / float64(keys)
		other := heapGrowth(func() any { return newBare(keys) }) / float64(keys)
		if mine > worst.Measured {
			worst.Measured, worst.Beside, worst.Ratio = mine, other, mine/other
		}
	}
	return worst
}

// heapGrowth returns by how many bytes the live heap is larger with what build
// returns: all of it, an empty engine included.
func heapGrowth(build func() any) float64 {
	before := liveHeap()
	made := build()
	after := liveHeap()
	runtime.KeepAlive(made)
	return float64(after - before)
}

// liveHeap returns the bytes of reachable objects. A second collection frees
// the objects that the first one only moved out of pools and finalizers.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// grownKeys is how many keys a daemon alone grows to. A quick run takes fewer.
const (
	grownKeys      = 10_000_000
	grownKeysQuick = 100_000
)

// growthRounds is how often a side grows. The same keys make the same tables
// grow, so an addition takes the least time of its rounds: the rest is what a
// busy machine adds now and then.
const growthRounds = 2

// growth is what growing from nothing to a number of keys took.
type growth struct {
	bytes   float64       // of the process for each key
	longest time.Duration // the CPU time of the longest addition of a key
}

// grownSides is the growth of an engine and that of a map.
type grownSides struct{ engine, bare growth }

// measureGrowth grows both sides to the same number of keys.
func (b *bench) measureGrowth(ctx context.Context) *grownSides {
	keys := grownKeys
	if b.quick {
		keys = grownKeysQuick
	}
	var g grownSides
	g.engine = grow(ctx, keys, func() (any, func(i int)) {
		w := emptyWorld(keys, node.Default(), rules.Limit{})
		return w, w.asker(0).ask
	})
	g.bare = grow(ctx, keys, func() (any, func(i int)) {
		other := newBare(0)
		return other, func(i int) { other.counts[other.key(i)] = 1 }
	})
	return &g
}

// grow adds keys 0 to n-1 to what build returns, in each round. The CPU time of
// an addition bounds that for which it holds a lock.
func grow(ctx context.Context, n int, build func() (made any, add func(i int))) (g growth) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := make([]time.Duration, n)
	for round := range growthRounds {
		debug.FreeOSMemory()
		before := residentHeap()
		made, add := build()
		for i := range n {
			if i%batch == 0 {
				check(ctx.Err())
			}
			start := threadTime()
			add(i)
			if t := threadTime() - start; round == 0 || t < took[i] {
				took[i] = t
			}
		}
		g.bytes = max(g.bytes, float64(residentHeap()-before)/float64(n))
		runtime.KeepAlive(made)
	}
	g.longest = slices.Max(took)
	return g
}

// residentHeap returns the bytes that the runtime has from the system, with
// what the collector has not freed yet.
func residentHeap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

// measureGrownMemory measures the memory of a key in a daemon alone.
func measureGrownMemory(_ context.Context, b *bench) outcome {
	g := b.growth()
	return compare(memory, least, [][]float64{{g.engine.bytes}, {g.bare.bytes}}, "map of hash to count")
}

// measureLongestHold measures how long a call with a new key takes at most
// while the tables grow.
func measureLongestHold(_ context.Context, b *bench) outcome {
	g := b.growth()
	return compare(nanoseconds, most, [][]float64{{float64(g.engine.longest)}, {float64(g.bare.longest)}}, "map of hash to count")
}
