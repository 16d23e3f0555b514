package demo

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/georld/rld/crdt"
)

// ages looks at how old the daemons' views of each other are, much more often
// than anybody reports, and at times that have nothing to do with the daemons'
// intervals. It is safe for concurrent use.
type ages struct {
	cluster *cluster
	rng     *rand.Rand // of run alone

	mu        sync.Mutex
	worst     [][]time.Duration // since they were taken last
	near, far durations
}

// agesEvery is the time between two looks, on average.
const agesEvery = 40 * time.Millisecond

func newAges(c *cluster, seed uint64) *ages {
	return &ages{
		cluster: c, rng: rand.New(rand.NewPCG(seed, streamAges)),
		worst: unknownAges(len(c.regions)), near: newDurations(), far: newDurations(),
	}
}

// unknownAges is a table of -1, which stands for never.
func unknownAges(regions int) [][]time.Duration {
	out := make([][]time.Duration, regions)
	for i := range out {
		out[i] = make([]time.Duration, regions)
		for j := range out[i] {
			out[i][j] = -1
		}
	}
	return out
}

// run looks until ctx ends.
func (a *ages) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			a.look()
		}
		timer.Reset(agesEvery/2 + time.Duration(a.rng.Int64N(int64(agesEvery))))
	}
}

// look samples the ages of the views that running daemons have of each other.
func (a *ages) look() {
	running := make(map[crdt.Incarnation]*instance)
	for _, i := range a.cluster.all {
		if r := i.live(); r != nil {
			running[r.handle.Engine().Incarnation()] = i
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range a.cluster.all {
		r := i.live()
		if r == nil {
			continue
		}
		for _, l := range r.handle.Links() {
			of := running[l.Peer.ID]
			if of == nil || l.Age < 0 {
				continue
			}
			to := &a.far
			if of.home == i.home {
				to = &a.near
			}
			to.add(l.Age)
			worst := &a.worst[i.home][of.home]
			*worst = max(*worst, l.Age, l.Unsent)
		}
	}
}

// take returns the greatest age since the last call of the views that the
// daemons of the row's region have of the column's region, unsent increments
// included, or -1 without a view.
func (a *ages) take() [][]time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.worst
	a.worst = unknownAges(len(a.cluster.regions))
	return out
}

// known returns the ages since the start of views in a region and across
// regions, whatever was cut.
func (a *ages) known() (near, far Quantiles) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.near.quantiles(), a.far.quantiles()
}

// durations counts times, to the hundredth part, up to longestCounted.
type durations struct{ h *hdrhistogram.Histogram }

const longestCounted = time.Hour

func newDurations() durations {
	return durations{hdrhistogram.New(1, longestCounted.Microseconds(), 2)}
}

func (d *durations) add(t time.Duration) {
	// Within the range nothing can fail.
	_ = d.h.RecordValue(min(max(t, 0), longestCounted).Microseconds())
}

func (d *durations) quantiles() Quantiles {
	at := func(q float64) float64 {
		return seconds(time.Duration(d.h.ValueAtQuantile(q)) * time.Microsecond)
	}
	return Quantiles{Samples: d.h.TotalCount(), P50: at(50), P99: at(99)}
}
