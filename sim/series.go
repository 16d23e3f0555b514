package sim

import (
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
