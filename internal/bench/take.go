package main

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// batch is how many decisions are made between two looks at the clock.
const batch = 1_000

// allocRun is how many decisions the allocations are counted over.
const allocRun = 1_000_000

// timed calls do, which makes n decisions, until d has passed, and returns
// the nanoseconds a decision.
func timed(d time.Duration, do func(n int) error) (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := time.Now()
	for n := batch; ; n += batch {
		if err := do(batch); err != nil {
			return 0, err
		}
		if took := time.Since(start); took >= d {
			return float64(took) / float64(n), nil
		}
	}
}

// random asks n random users.
func (a *asker) random(keys, n int) error {
	for range n {
		if err := a.ask(a.rng.IntN(keys)); err != nil {
			return err
		}
	}
	return nil
}

// decide returns the nanoseconds a decision on one core.
func (w *world) decide(d time.Duration, seed uint64) (float64, error) {
	a := w.asker(seed)
	defer w.leave(a)
	return timed(d, func(n int) error { return a.random(w.keys, n) })
}

// decideTogether returns the decisions a second of goroutines that each have
// a thread of their own.
func (w *world) decideTogether(d time.Duration, goroutines int) (float64, error) {
	askers := make([]*asker, goroutines)
	rates := make([]float64, goroutines)
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for i := range askers {
		askers[i] = w.asker(uint64(i + 1))
		all.Go(func() {
			var ns float64
			ns, errs[i] = timed(d, func(n int) error { return askers[i].random(w.keys, n) })
			rates[i] = float64(time.Second) / ns
		})
	}
	all.Wait()
	sum := 0.0
	for i, a := range askers {
		w.leave(a)
		sum += rates[i]
	}
	return sum, errors.Join(errs...)
}

// reads returns the nanoseconds that a hash and a read of the map take.
func (b *bare) reads(d time.Duration) (float64, error) {
	return timed(d, func(n int) error {
		for range n {
			b.read(b.rng.IntN(len(b.counts)))
		}
		return nil
	})
}

// measureTake measures a decision of random keys on one core.
func measureTake(keys int) measure {
	return func(ctx context.Context, b *bench) (outcome, error) {
		w, err := newWorld(keys)
		if err != nil {
			return outcome{}, err
		}
		other := newBare(keys)
		runtime.GC()
		readings, err := alternate(ctx, b.rounds(5),
			func() (float64, error) { return w.decide(b.loop, 1) },
			func() (float64, error) { return other.reads(b.loop) },
		)
		if err != nil {
			return outcome{}, err
		}
		return compare(nanoseconds, least, readings, "hash + one map read"), nil
	}
}

// measureCores measures how two cores share a million keys.
func measureCores(ctx context.Context, b *bench) (outcome, error) {
	w, err := newWorld(1_000_000)
	if err != nil {
		return outcome{}, err
	}
	runtime.GC()
	readings, err := alternate(ctx, b.rounds(5),
		func() (float64, error) { return w.decideTogether(b.loop, 2) },
		func() (float64, error) { return w.decideTogether(b.loop, 1) },
	)
	if err != nil {
		return outcome{}, err
	}
	return compare(perSecond, most, readings, "one core"), nil
}

// measureAllocs counts what deciding on live keys leaves to the collector.
func measureAllocs(ctx context.Context, b *bench) (outcome, error) {
	w, err := newWorld(1_000_000)
	if err != nil {
		return outcome{}, err
	}
	other := newBare(1_000)
	a := w.asker(1)
	if err := a.ask(0); err != nil { // The first call makes the memory of all.
		return outcome{}, err
	}
	readings, err := alternate(ctx, b.rounds(5),
		func() (float64, error) {
			return mallocs(func() error { return a.random(w.keys, allocRun) })
		},
		func() (float64, error) {
			return mallocs(func() error {
				for i := range allocRun {
					other.read(i % len(other.counts))
				}
				return nil
			})
		},
	)
	if err != nil {
		return outcome{}, err
	}
	return compare(allocations, least, readings, "hash + one map read"), nil
}

// mallocs returns how many objects f allocated. Nothing else may run: other
// goroutines would be counted.
func mallocs(f func() error) (float64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs), err
}

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

// liveHeap returns the bytes of reachable objects. A second collection frees
// the objects that the first one only moved out of pools and finalizers.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
