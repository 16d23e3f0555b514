package grid

import (
	"time"

	"github.com/georld/rld/sim"
)

// tally counts the hits requested and admitted in each window, in a run of one
// key.
type tally struct {
	window              time.Duration
	requested, admitted []uint64
}

// newTally returns one for the whole windows of a run.
func newTally(window, duration time.Duration) *tally {
	n := duration / window
	return &tally{window: window, requested: make([]uint64, n), admitted: make([]uint64, n)}
}

// overage is what windows admitted beyond a limit on average and at worst, as a
// share of it; a window below the limit counts as 0. The first windows are left
// out.
func (g *tally) overage(limit uint64, skipped int) (mean, worst float64) {
	counted := g.admitted[skipped:]
	for _, n := range counted {
		over := float64(n-min(n, limit)) / float64(limit)
		mean += over / float64(len(counted))
		worst = max(worst, over)
	}
	return mean, worst
}

// falseDenials is the mean share of what could have been admitted in a window
// that was not. Windows that nobody requested in count as 0.
func (g *tally) falseDenials(limit uint64, skipped int) float64 {
	sum := 0.0
	for i := skipped; i < len(g.requested); i++ {
		if could := min(limit, g.requested[i]); could > 0 {
			sum += float64(could-min(could, g.admitted[i])) / float64(could)
		}
	}
	return sum / float64(max(1, len(g.requested)-skipped))
}

// beside returns a function that adds the tally to the auditors of another one,
// which may be nil.
func (g *tally) beside(auditors func(*sim.World) []*sim.Auditor) func(*sim.World) []*sim.Auditor {
	return func(w *sim.World) []*sim.Auditor {
		own := []*sim.Auditor{{Decided: g.decided}}
		if auditors == nil {
			return own
		}
		return append(own, auditors(w)...)
	}
}

// decided counts a decision.
func (g *tally) decided(d *sim.Decided) {
	if i := int(d.At / g.window); i < len(g.requested) {
		g.requested[i] += d.Hits
		if d.Allowed {
			g.admitted[i] += d.Hits
		}
	}
}
