package main

import (
	"context"
	"runtime"
)

// memorySizes are the numbers of keys to measure: tables that double are
// fullest just before they grow and emptiest just after.
var memorySizes = [...]int{800_000, 1_000_000, 1_200_000}

// measureMemory measures how the heap grows by a live key, the worst of the
// sizes.
func measureMemory(ctx context.Context, _ *bench) (outcome, error) {
	worst := outcome{Unit: memory, BesideWhat: "map of hash to count"}
	for _, keys := range memorySizes {
		if err := ctx.Err(); err != nil {
			return outcome{}, err
		}
		world, err := heapGrowth(func() (any, error) { return newWorld(keys) })
		if err != nil {
			return outcome{}, err
		}
		other, err := heapGrowth(func() (any, error) { return newBare(keys), nil })
		if err != nil {
			return outcome{}, err
		}
		if a := float64(world) / float64(keys); a > worst.Measured {
			worst.Measured, worst.Beside = a, float64(other)/float64(keys)
			worst.Ratio = worst.Measured / worst.Beside
		}
	}
	return worst, nil
}

// heapGrowth returns by how many bytes the live heap is larger with what build
// returns: all of it, an empty engine included.
func heapGrowth(build func() (any, error)) (int64, error) {
	before := liveHeap()
	made, err := build()
	after := liveHeap()
	runtime.KeepAlive(made)
	return after - before, err
}

// liveHeap returns the bytes of reachable objects. A second collection
// takes what the first only moved out of pools and finalizers.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
