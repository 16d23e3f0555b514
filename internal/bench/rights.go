package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
)

// allRights is a daemon that holds all rights of every window.
type allRights struct{}

func (allRights) Version() uint64 { return 1 }

func (allRights) Allotment(_, total uint64, _, _ int64, _ bool) (uint64, epoch.Reason) {
	return total, epoch.ReasonEpoch
}

func (allRights) PartOf(string, uint64, uint64, int64, int64, bool) uint64 { return 0 }

func (allRights) RegionAllotment(_, total uint64, _, _ int64) (uint64, epoch.Reason) {
	return total, epoch.ReasonEpoch
}

func (allRights) Former(_, total uint64, _, _ int64, _ bool) (uint64, epoch.Reason) {
	return total, epoch.ReasonEpoch
}

func (allRights) RegionPart(_ string, _, total uint64, _, _ int64) uint64 { return total }

// RegionMost is part of node.Allotments.
func (allRights) RegionMost(_ string, _, total uint64, _, _ int64) uint64 { return total }

// measureRights measures the cost of the rights gate in a decision on a key
// that is near its limit, so that its rights are counted. Both sides replicate.
func measureRights(ctx context.Context, b *bench) outcome {
	const keys, near = 1_000, worldLimit / 8 * 5
	cfg := node.Default()
	cfg.Region, cfg.Name = "bench", "bench-0"
	alone := buildWorld(keys, near, cfg, rules.Limit{})
	cfg.Allotments = allRights{}
	both := buildWorld(keys, near, cfg, rules.Limit{HasBudget: true})
	noAllocations(both)
	runtime.GC()
	readings := alternate(ctx, b.rounds(7),
		func() float64 { return both.decide(b.loop, 1) },
		func() float64 { return alone.decide(b.loop, 1) },
	)
	return compare(nanoseconds, least, readings, "the estimate alone")
}

// noAllocations fails for a world whose decisions leave objects to the
// collector.
func noAllocations(w *world) {
	a := w.asker(1)
	defer w.leave(a)
	a.random(w.keys, allocRun/10)
	n := mallocs(func() { a.random(w.keys, allocRun/10) })
	if n > allocRun/1_000_000 {
		check(fmt.Errorf("%g allocations in %d decisions by both gates, want none", n, allocRun/10))
	}
}
