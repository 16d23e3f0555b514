package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

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
