package sim

import (
	"time"

	"github.com/georld/rld/gossip"
)

// gauge is an auditor that counts what was asked for and admitted in each
// window, in a run of one key.
type gauge struct {
	window          time.Duration
	asked, admitted []uint64
}

// newGauge returns one for the whole windows of a run.
func newGauge(window, duration time.Duration) *gauge {
	n := duration / window
	return &gauge{window: window, asked: make([]uint64, n), admitted: make([]uint64, n)}
}

// overage is what windows admitted beyond a limit on average and at worst, as a
// share of it; a window below the limit counts as 0. The first windows are left
// out.
func (g *gauge) overage(limit uint64, skipped int) (mean, worst float64) {
	counted := g.admitted[skipped:]
	for _, n := range counted {
		over := float64(n-min(n, limit)) / float64(limit)
		mean += over / float64(len(counted))
		worst = max(worst, over)
	}
	return mean, worst
}

// falseDenials is the mean share of what could have been admitted in a window
// that was not. Windows that nobody asked in count as 0.
func (g *gauge) falseDenials(limit uint64, skipped int) float64 {
	sum := 0.0
	for i := skipped; i < len(g.asked); i++ {
		if could := min(limit, g.asked[i]); could > 0 {
			sum += float64(missing(limit, g.asked[i], g.admitted[i])) / float64(could)
		}
	}
	return sum / float64(max(1, len(g.asked)-skipped))
}

// missing is what could have been admitted in a window and was not.
func missing(limit, asked, admitted uint64) uint64 {
	could := min(limit, asked)
	return could - min(could, admitted)
}

// Name implements Auditor.
func (g *gauge) Name() string { return "gauge" }

// Decided counts a decision.
func (g *gauge) Decided(_ *World, d *Decided) {
	if i := int(d.At / g.window); i < len(g.asked) {
		g.asked[i] += d.Hits
		if d.Allowed {
			g.admitted[i] += d.Hits
		}
	}
}

// Stepped implements Auditor.
func (g *gauge) Stepped(*World, *Daemon, *gossip.Message, error) {}

// Happened implements Auditor.
func (g *gauge) Happened(*World, *Daemon, gossip.Event) {}

// Restarted implements Auditor.
func (g *gauge) Restarted(*World, *Daemon) {}

// Down implements Auditor.
func (g *gauge) Down(*World, *Daemon) {}

// Ended implements Auditor.
func (g *gauge) Ended(*World, bool) {}

// Report implements Auditor.
func (g *gauge) Report() Audit { return Audit{Name: g.Name()} }
