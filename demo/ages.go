package demo

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// ages looks at how old the daemons' views of each other are, much more often
// than anybody reports, and at times that have nothing to do with the daemons'
// intervals. It is safe for concurrent use.
type ages struct {
	cluster *cluster
	rng     *rand.Rand // of run alone

	mu    sync.Mutex
	worst map[[2]int]time.Duration // by regions, since they were taken last
	all   durations
}

// agesEvery is the time between two looks, on average.
const agesEvery = 40 * time.Millisecond

func newAges(c *cluster, seed uint64) *ages {
	return &ages{
		cluster: c, rng: rand.New(rand.NewPCG(seed, streamAges)),
		worst: make(map[[2]int]time.Duration), all: newDurations(),
	}
}

// run looks until ctx ends.
func (a *ages) run(ctx context.Context) {
	for ctx.Err() == nil {
		a.look()
		pause(ctx, agesEvery/2+time.Duration(a.rng.Int64N(int64(agesEvery))))
	}
}

// look samples the ages of the views that running daemons have of each other.
func (a *ages) look() {
	running := a.cluster.running()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, r := range a.cluster.live() {
		for _, l := range r.handle.Links() {
			of := running[l.Peer.ID]
			if of == nil || l.Age < 0 {
				continue
			}
			a.all.add(l.Expected(l.Age), of.region == i.region)
			pair := [2]int{i.region, of.region}
			a.worst[pair] = max(a.worst[pair], l.Expected(l.Unsent))
		}
	}
}

// take returns the greatest age since the last call of the views that the
// daemons of the first region have of the second region, unsent increments
// included. A pair without a view has no entry.
func (a *ages) take() map[[2]int]time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.worst
	a.worst = make(map[[2]int]time.Duration)
	return out
}

// known returns the ages since the start of views in a region and across
// regions, whatever was cut.
func (a *ages) known() Spans {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all.spans()
}

// durations counts times in a region and across regions, to the hundredth part,
// up to longestCounted.
type durations struct{ near, far *hdrhistogram.Histogram }

const longestCounted = time.Hour

func newDurations() durations {
	h := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, longestCounted.Microseconds(), 2) }
	return durations{h(), h()}
}

func (d *durations) add(t time.Duration, near bool) {
	h := d.far
	if near {
		h = d.near
	}
	// Within the range nothing can fail.
	_ = h.RecordValue(min(max(t, 0), longestCounted).Microseconds())
}

func (d *durations) spans() Spans { return Spans{quantiles(d.near), quantiles(d.far)} }

func quantiles(h *hdrhistogram.Histogram) Quantiles {
	at := func(q float64) float64 {
		return seconds(time.Duration(h.ValueAtQuantile(q)) * time.Microsecond)
	}
	return Quantiles{Samples: h.TotalCount(), P50: at(50), P99: at(99)}
}
