// Package grid plays many runs in place of one: every policy under every
// pattern of load at every size, each summed up in a row of a table.
package grid

import (
	"fmt"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/load"
)

// Grid plays every policy under every pattern of load at every size: a
// run of it is many runs, and its result is a table. Regions, links and the
// budget are those of the scenario.
type Grid struct {
	Policies []sim.Policy
	Patterns []Pattern
	Sizes    []Size
	// Windows of a minute are played under each; of shorter windows more, of an
	// attack half as many, and of bursts three times. Before them comes the
	// time in which shares come to follow demand, which is not measured.
	Windows int
}

// Size is how long windows are, how old views, and how much a window has.
type Size struct {
	Window, Lag time.Duration
	Limit       int
}

// Bounds on a grid.
const (
	MaxSizes   = 16
	MaxWindows = 1_000
	MaxWindow  = time.Hour
)

func (g *Grid) Validate() error {
	switch {
	case len(g.Policies) == 0 || len(g.Patterns) == 0 || len(g.Sizes) == 0:
		return fmt.Errorf("sim: grid of %d policies, %d patterns and %d sizes: want at least one of each",
			len(g.Policies), len(g.Patterns), len(g.Sizes))
	case g.Windows < 1 || g.Windows > MaxWindows:
		return fmt.Errorf("sim: grid of %d windows: want 1 to %d", g.Windows, MaxWindows)
	}
	for _, s := range g.Sizes {
		if s.Window < time.Second || s.Window > MaxWindow || s.Window%time.Second != 0 ||
			s.Lag < 20*time.Millisecond || s.Lag > s.Window || s.Limit < 1 || s.Limit > load.MaxRate {
			return fmt.Errorf("sim: grid of windows of %v, lag %v and limit %d: want whole seconds up to %v, 20 ms to the window, 1 to %d",
				s.Window, s.Lag, s.Limit, MaxWindow, load.MaxRate)
		}
	}
	return nil
}

// Run plays all cells of the grid. The result sums up their runs.
func (g *Grid) Run(cfg *sim.Config, o sim.Options) (*sim.Result, error) {
	sum := &sim.Result{Scenario: cfg.Name, Seed: cfg.Seed, Regions: len(cfg.Regions), Daemons: cfg.Daemons()}
	hash := xxhash.New()
	for _, size := range g.Sizes {
		for _, pattern := range g.Patterns {
			for _, p := range g.Policies {
				cell, r, err := g.play(cfg, size, pattern, p, o)
				if err != nil {
					return nil, err
				}
				sum.Grid = append(sum.Grid, cell)
				sum.Include(r)
				_, _ = hash.WriteString(r.TraceHash) // never fails
			}
		}
	}
	if sum.Decisions > 0 {
		sum.BytesPerDecision = float64(sum.Traffic.Bytes) / float64(sum.Decisions)
	}
	sum.TraceHash = fmt.Sprintf("%016x", hash.Sum64())
	return sum, nil
}

// play plays one cell.
func (g *Grid) play(base *sim.Config, size Size, pattern Pattern, p sim.Policy, o sim.Options) (sim.GridCell, *sim.Result, error) {
	cell := sim.GridCell{
		WindowSeconds: size.Window.Seconds(), LagSeconds: size.Lag.Seconds(), Pattern: pattern.String(), Policy: p.String(),
		Windows: g.windows(size, pattern), Design: designFor(size, pattern, p),
	}
	cfg := cellConfig(base, size, pattern, p, cell.Windows)
	t := newTally(size.Window, cfg.Duration)
	r, err := sim.Run(cfg, sim.Options{Auditors: t.beside(o.Auditors)})
	if err != nil {
		return cell, nil, err
	}
	limit := uint64(size.Limit)
	skipped := len(t.requested) - cell.Windows
	cell.OverageMean, cell.OverageWorst = t.overage(limit, skipped)
	cell.FalseDenial = t.falseDenials(limit, skipped)
	for _, n := range t.admitted[skipped:] {
		if n > p.Total(cfg.Rules.Rules()[0].Limit) {
			cell.Exceeded++
		}
	}
	if r.Rights != nil {
		cell.Transfers = r.Rights.PerDecision
	}
	return cell, r, nil
}

// adaption is how long shares have to come to follow a pattern before it is
// measured, and priors of short windows to be learnt: 100 windows of a second,
// or 30 of ten.
func adaption(p Pattern, size Size) time.Duration {
	least := time.Minute
	if p == Smooth {
		least = 4 * time.Minute // its regions are far from equal
	}
	if size.Window >= time.Minute {
		return least
	}
	return max(least, min(5*time.Minute, 100*size.Window))
}

// windows is how many windows of a cell are measured.
func (g *Grid) windows(size Size, pattern Pattern) int {
	n := float64(g.Windows) * math.Sqrt(max(1, float64(time.Minute)/float64(size.Window)))
	switch pattern {
	case Attack:
		n /= 2
	case Bursty, SoloBurst: // of which each window is another
		n *= 3
	case MovingSpot: // every region is as long the hot one
		n = math.Ceil(n/(3*movingWindows)) * 3 * movingWindows
	}
	return int(math.Ceil(n))
}

// cellConfig is the configuration of one cell.
func cellConfig(base *sim.Config, size Size, pattern Pattern, p sim.Policy, windows int) *sim.Config {
	cfg := *base
	cfg.Grid, cfg.Policy, cfg.Trace, cfg.Faults, cfg.Settle = nil, p, nil, nil, 0
	cfg.Name = fmt.Sprintf("%s: %s, %s, windows of %v, lag %v", base.Name, p, pattern, size.Window, size.Lag)
	warmUp := (adaption(pattern, size) + size.Window - 1) / size.Window
	cfg.Duration = (time.Duration(windows) + warmUp) * size.Window
	// Views are as old as a frame takes and half an interval.
	interval := max(50*time.Millisecond, size.Lag/5)
	interval = min(interval, size.Lag)
	delay := size.Lag - interval/2
	cfg.Node.Gossip.WANInterval = interval
	cfg.Node.Gossip.Interval = min(cfg.Node.Gossip.WithDefaults().Interval, interval)
	cfg.Network.Across.Delay, cfg.Network.Across.Jitter, cfg.Network.Across.Uniform = delay*4/5, delay*2/5, true
	cfg.Rules, cfg.Limits = gridRules(base.Rules, size)
	cfg.Workloads = []load.Workload{pattern.workload(size, len(cfg.Regions), base.Workloads)}
	return &cfg
}

// gridRules is a limit of the size with the budget that the first one of a set
// has, and its text. It is one of an aggregate, not of each of many entities.
func gridRules(set *rules.Set, size Size) (*rules.Set, string) {
	budget := ""
	if all := set.Rules(); len(all) > 0 && all[0].Limit != nil && all[0].Limit.HasBudget {
		b := uint64(all[0].Limit.Budget)
		percent := uint64(rules.Percent)
		budget = fmt.Sprintf(", overage_budget: %d.%04d%%", b/percent, b%percent)
	}
	text := fmt.Sprintf("domain: grid\ndescriptors:\n"+
		"  - key: org\n    value: acme\n    rate_limit: {unit: second, unit_multiplier: %d, requests_per_unit: %d%s}\n",
		size.Window/time.Second, size.Limit, budget)
	set, diags := limits.Parse([]limits.File{{Name: "grid", Data: []byte(text)}}, limits.Options{})
	if err := diags.Err(); err != nil {
		panic(fmt.Sprintf("sim: limits of a grid: %v", err)) // of our own making
	}
	return set, text
}
