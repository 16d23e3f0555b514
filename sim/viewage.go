package sim

import (
	"math/bits"
	"math/rand/v2"
	"time"
)

// views samples how old the replicas' views of each other are, at times that
// have nothing to do with their intervals.
type views struct {
	step           time.Duration
	rng            *rand.Rand
	region, across ages
	unsent         histogram
}

// ages counts the ages of views.
type ages struct {
	histogram
	worst time.Duration // since the last row of the series
}

// The samples of a run: fewer where there are many pairs of daemons to look at.
const (
	viewSamples = 400
	viewPairs   = 400_000
)

func (v *views) prepare(w *World) {
	n := len(w.daemons)
	samples := max(50, min(viewSamples, viewPairs/(n*n)))
	v.step = max(w.cfg.Duration/time.Duration(samples), time.Millisecond)
	v.rng = rand.New(rand.NewPCG(w.cfg.Seed, streamSamples))
	v.next(w, 0)
}

// next schedules the sample of the step that begins at a time.
func (v *views) next(w *World, at time.Duration) {
	if at < w.cfg.Duration {
		w.events.push(at+time.Duration(v.rng.Int64N(int64(v.step))), evViews, int32(at/v.step))
	}
}

// sample looks at the views of peers that are there.
func (v *views) sample(w *World) {
	for _, d := range w.daemons {
		if !d.Up || d.Paused {
			continue
		}
		at := d.Instant(w.now)
		for l := range d.Nodes[0].Links(at) {
			i, known := w.membership.byAddress[l.Peer.ID]
			if l.Age < 0 || !known || !w.membership.all[i].up {
				continue
			}
			of := &v.across
			if l.Peer.Region == d.Region {
				of = &v.region
			}
			of.add(l.Age)
			of.worst = max(of.worst, l.Age)
			v.unsent.add(max(l.Unsent, 0))
		}
	}
	v.next(w, w.now-w.now%v.step+v.step)
}

// staleness returns the ages in milliseconds.
func (v *views) staleness() Staleness {
	return Staleness{
		RegionP50Ms: millis(v.region.quantile(0.50)), RegionP99Ms: millis(v.region.quantile(0.99)),
		AcrossP50Ms: millis(v.across.quantile(0.50)), AcrossP99Ms: millis(v.across.quantile(0.99)),
		UnsentP99Ms: millis(v.unsent.quantile(0.99)),
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// histogram counts times in buckets a 64th of their size wide. The zero value
// is empty.
type histogram struct {
	counts [64 * 48]uint64
	total  uint64
}

// add counts a time, in microseconds; below 0 counts as 0.
func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(uint64(max(d, 0)/time.Microsecond))]++
	h.total++
}

// quantile returns the upper end of the bucket in which a share q of the times
// is reached, 0 when nothing was counted.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	want := max(1, uint64(q*float64(h.total)+0.5))
	seen := uint64(0)
	for i, n := range h.counts {
		if seen += n; seen >= want {
			return time.Duration(endOf(i)) * time.Microsecond
		}
	}
	return time.Duration(endOf(len(h.counts)-1)) * time.Microsecond
}

// bucketOf returns the bucket of a number of microseconds: those below 128 have
// one each, then 64 to each power of two.
func bucketOf(us uint64) int {
	if us < 128 {
		return int(us)
	}
	shift := bits.Len64(us) - 7
	return min(shift*64+int(us>>shift), 64*48-1)
}

// endOf returns the greatest number of microseconds of a bucket.
func endOf(bucket int) uint64 {
	if bucket < 128 {
		return uint64(bucket)
	}
	shift := bucket/64 - 1
	return (uint64(bucket-shift*64)+1)<<shift - 1
}
