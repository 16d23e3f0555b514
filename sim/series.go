package sim

import (
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/georld/rld/quota"
)

// seriesRows is about how many rows a run has, seriesRules the most rules.
const (
	seriesRows  = 300
	seriesRules = 64
)

// recorder fills the series of a run.
type recorder struct {
	on   bool
	step time.Duration
	out  Series
}

func (r *recorder) prepare(w *World) {
	// Rows are due whether they are kept or not, so that a run is the same.
	r.step = stepOf(w.cfg.Duration)
	w.events.push(r.step, evSample, 0)
	if !r.on {
		return
	}
	r.out = Series{StepSeconds: r.step.Seconds(), Regions: w.regions}
	for i := range min(len(w.tallies.rules), seriesRules) {
		t := &w.tallies.rules[i]
		r.out.Rules = append(r.out.Rules, RuleSeries{
			Rule: t.name, Limit: float64(quota.Of(t.limit).Capacity()), Admitted: make([][]float64, len(w.regions)),
		})
	}
	for i := range w.cfg.Faults {
		r.out.Faults = append(r.out.Faults, record(&w.cfg.Faults[i], w.cfg.Duration))
	}
}

// stepOf is the length of a step, a round number.
func stepOf(total time.Duration) time.Duration {
	want := total / seriesRows
	for unit := time.Millisecond; ; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if n*unit >= want {
				return n * unit
			}
		}
	}
}

// record is how a fault stands on the time axis.
func record(f *Fault, end time.Duration) FaultRecord {
	to := end
	if f.For > 0 {
		to = min(end, f.At+f.For)
	}
	if f.Rules != nil {
		to = f.At + f.For
	}
	return FaultRecord{From: f.At.Seconds(), To: to.Seconds(), Text: f.String()}
}

// sample adds a row.
func (r *recorder) sample(w *World) {
	if next := w.now + r.step; next <= w.cfg.Duration {
		w.events.push(next, evSample, 0)
	}
	if !r.on {
		return
	}
	s := &r.out
	s.Seconds = append(s.Seconds, w.now.Seconds())
	s.InRegionMs = append(s.InRegionMs, millis(w.views.region.worst))
	s.AcrossMs = append(s.AcrossMs, millis(w.views.across.worst))
	w.views.region.worst, w.views.across.worst = 0, 0
	for i := range s.Rules {
		t, row := &w.tallies.rules[i], &s.Rules[i]
		for region := range row.Admitted {
			row.Admitted[region] = append(row.Admitted[region], t.stepAdmitted[region])
		}
		row.Denied = append(row.Denied, t.stepDenied)
		row.Overage = append(row.Overage, 0)
		row.Bound = append(row.Bound, 0)
		clear(t.stepAdmitted)
		t.stepDenied = 0
	}
	w.auditors.sample(s)
}

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
// A sample looks at viewsAtOnce views, of other daemons each time.
const (
	viewSamples = 400
	viewPairs   = 400_000
	viewsAtOnce = 100_000
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
	n := len(w.daemons)
	stride := 1 + n*n/viewsAtOnce
	for i := int(w.now/v.step) % stride; i < n; i += stride {
		d := w.daemons[i]
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
			age := l.Expected(l.Age)
			of.add(age)
			of.worst = max(of.worst, age)
			v.unsent.add(max(l.Expected(l.Unsent), 0))
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
