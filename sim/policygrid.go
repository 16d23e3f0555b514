package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/georld/rld/rules"
)

// PolicyGrid plays every policy under every pattern of load at every size: a
// run of it is many runs, and its result is a table. Regions, links and the
// budget are those of the scenario.
type PolicyGrid struct {
	Policies []Policy
	Patterns []Pattern
	Sizes    []GridSize
	// Windows of a minute are played under each; of shorter windows more, of an
	// attack half as many, and of bursts three times. Before them comes the time in which shares
	// come to follow demand, which is not measured.
	Windows int
}

// GridSize is how long windows are, how old views, and how much a window has.
type GridSize struct {
	Window, Lag time.Duration
	Limit       int
}

// Bounds on a grid.
const (
	maxGridSizes   = 16
	maxGridWindows = 1_000
	maxGridWindow  = time.Hour
)

// GridCellResult is what came of one policy under one pattern at one size.
// Ratios are fractions of 1: of the limit, and false denials of what could have
// been admitted, the limit or all that was asked for.
type GridCellResult struct {
	WindowSeconds float64 `json:"window_seconds"`
	LagSeconds    float64 `json:"lag_seconds"`
	Pattern       string  `json:"pattern"`
	Policy        string  `json:"policy"`
	Windows       int     `json:"windows"`
	OverageMean   float64 `json:"overage_mean"`
	OverageWorst  float64 `json:"overage_worst"`
	FalseDenial   float64 `json:"false_denial_mean"`
	// Exceeded counts the windows above what the rights sum to; the naive and
	// the extrapolated policies have none, and are held to the budget.
	Exceeded uint64 `json:"exceeded"`
	// Donations is the messages about donations for a decision.
	Donations float64 `json:"transfers"`
	// Design is what a small simulation found that the policies were designed
	// with, nil where it played no such cell.
	Design *GridDesign `json:"design,omitempty"`
}

// GridDesign is the figures of a cell in the simulation of the design.
type GridDesign struct {
	OverageMean  float64 `json:"overage_mean"`
	OverageWorst float64 `json:"overage_worst"`
	FalseDenial  float64 `json:"false_denial_mean"`
}

func (g *PolicyGrid) validate() error {
	switch {
	case len(g.Policies) == 0 || len(g.Patterns) == 0 || len(g.Sizes) == 0:
		return fmt.Errorf("sim: grid of %d policies, %d patterns and %d sizes: want at least one of each",
			len(g.Policies), len(g.Patterns), len(g.Sizes))
	case len(g.Policies) > policyKinds || len(g.Patterns) > patternKinds || len(g.Sizes) > maxGridSizes:
		return fmt.Errorf("sim: grid of %d policies, %d patterns and %d sizes: want at most %d, %d and %d",
			len(g.Policies), len(g.Patterns), len(g.Sizes), policyKinds, patternKinds, maxGridSizes)
	case g.Windows < 1 || g.Windows > maxGridWindows:
		return fmt.Errorf("sim: grid of %d windows: want 1 to %d", g.Windows, maxGridWindows)
	}
	for _, s := range g.Sizes {
		if s.Window < time.Second || s.Window > maxGridWindow || s.Window%time.Second != 0 ||
			s.Lag < 20*time.Millisecond || s.Lag > s.Window || s.Limit < 1 || s.Limit > MaxRate {
			return fmt.Errorf("sim: grid of windows of %v, lag %v and limit %d: want whole seconds up to %v, 20 ms to the window, 1 to %d",
				s.Window, s.Lag, s.Limit, maxGridWindow, MaxRate)
		}
	}
	return nil
}

// runGrid plays all cells of a grid. The result sums up their runs.
func runGrid(cfg *Config, o Options) (*Result, error) {
	start := time.Duration(0)
	if o.Wall != nil {
		start = o.Wall()
	}
	sum := &Result{Scenario: cfg.Name, Seed: cfg.Seed, Regions: len(cfg.Regions), Daemons: cfg.Daemons(), Seen: map[string]uint64{}}
	hash := xxhash.New()
	for _, size := range cfg.Grid.Sizes {
		for _, pattern := range cfg.Grid.Patterns {
			for _, p := range cfg.Grid.Policies {
				cell, r, err := playCell(cfg, size, pattern, p, o.Auditors)
				if err != nil {
					return nil, err
				}
				sum.Grid = append(sum.Grid, cell)
				sum.include(r)
				_, _ = hash.WriteString(r.TraceHash) // never fails
			}
		}
	}
	if sum.Decisions > 0 {
		sum.BytesPerDecision = float64(sum.Traffic.Bytes) / float64(sum.Decisions)
	}
	sum.TraceHash = fmt.Sprintf("%016x", hash.Sum64())
	if o.Wall != nil {
		sum.WallSeconds = seconds(o.Wall() - start)
	}
	return sum, nil
}

// include adds the sums of a run to those of a grid.
func (r *Result) include(o *Result) {
	r.VirtualSeconds += o.VirtualSeconds
	r.Events += o.Events
	r.Decisions += o.Decisions
	r.Admitted += o.Admitted
	r.Denied += o.Denied
	r.Degraded += o.Degraded
	r.Unanswered += o.Unanswered
	r.Traffic.include(&o.Traffic)
	for name, n := range o.Seen {
		r.Seen[name] += n
	}
	for _, a := range o.Auditors {
		i := slices.IndexFunc(r.Auditors, func(b Audit) bool { return a.Name == b.Name })
		if i < 0 {
			r.Auditors = append(r.Auditors, a)
			continue
		}
		b := &r.Auditors[i]
		b.Checks += a.Checks
		b.Violations += a.Violations
		if b.First == "" {
			b.First = a.First
		}
	}
}

func (t *Traffic) include(o *Traffic) {
	for _, f := range []struct{ to, from *uint64 }{
		{&t.Frames, &o.Frames}, {&t.Bytes, &o.Bytes}, {&t.Lost, &o.Lost}, {&t.Duplicated, &o.Duplicated},
		{&t.Mangled, &o.Mangled}, {&t.Refused, &o.Refused}, {&t.Accepted, &o.Accepted},
		{&t.Rights, &o.Rights}, {&t.RightsBytes, &o.RightsBytes},
		{&t.Overflowed, &o.Overflowed}, {&t.Unsendable, &o.Unsendable}, {&t.Unreadable, &o.Unreadable},
	} {
		*f.to += *f.from
	}
}

// gridAuditors are those that watch the cells of a grid unless others are
// asked for.
var gridAuditors = []string{"rights", "admitted"}

// playCell plays one cell.
func playCell(base *Config, size GridSize, pattern Pattern, p Policy, names []string) (GridCellResult, *Result, error) {
	cell := GridCellResult{
		WindowSeconds: seconds(size.Window), LagSeconds: seconds(size.Lag), Pattern: pattern.String(), Policy: p.String(),
		Windows: base.Grid.windows(size, pattern), Design: designFor(size, pattern, p),
	}
	cfg := cellConfig(base, size, pattern, p, cell.Windows)
	if err := cfg.Validate(); err != nil {
		return cell, nil, err
	}
	if names == nil {
		names = gridAuditors
	}
	w := newWorld(cfg)
	w.audit(Options{Auditors: names})
	g := newGauge(size.Window, cfg.Duration)
	w.auditors = append(w.auditors, g)
	r, err := guarded(w, w.play)
	if err != nil {
		return cell, nil, err
	}
	r.Auditors = slices.DeleteFunc(r.Auditors, func(a Audit) bool { return a.Name == g.Name() })
	limit := uint64(size.Limit)
	skipped := len(g.asked) - cell.Windows
	cell.OverageMean, cell.OverageWorst = g.overage(limit, skipped)
	cell.FalseDenial = g.falseDenials(limit, skipped)
	for _, n := range g.admitted[skipped:] {
		if n > p.gridTotal(cfg.Rules.Rules()[0].Limit) {
			cell.Exceeded++
		}
	}
	if r.Rights != nil {
		cell.Donations = r.Rights.PerDecision
	}
	return cell, r, nil
}

// gridTotal is what a window may have: without rights, the budget.
func (p Policy) gridTotal(l *rules.Limit) uint64 {
	if p.hasRights() {
		return p.total(l)
	}
	return l.Total()
}

// adaption is how long shares have to come to follow a pattern before it is
// measured.
func adaption(p Pattern) time.Duration {
	if p == Smooth {
		return 4 * time.Minute // its regions are far from equal
	}
	return time.Minute
}

// windows is how many windows of a cell are measured.
func (g *PolicyGrid) windows(size GridSize, pattern Pattern) int {
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
func cellConfig(base *Config, size GridSize, pattern Pattern, p Policy, windows int) *Config {
	cfg := *base
	cfg.Grid, cfg.Policy, cfg.Trace, cfg.Faults, cfg.Settle = nil, p, nil, nil, 0
	cfg.Name = fmt.Sprintf("%s: %s, %s, windows of %v, lag %v", base.Name, p, pattern, size.Window, size.Lag)
	warmUp := (adaption(pattern) + size.Window - 1) / size.Window
	cfg.Duration = (time.Duration(windows) + warmUp) * size.Window
	// Views are as old as a frame takes and half an interval.
	interval := max(50*time.Millisecond, size.Lag/5)
	interval = min(interval, size.Lag)
	delay := size.Lag - interval/2
	cfg.Node.Gossip.WANInterval = interval
	cfg.Node.Gossip.Interval = min(cfg.Node.Gossip.WithDefaults().Interval, interval)
	cfg.Network.Across.Delay, cfg.Network.Across.Jitter, cfg.Network.Across.Uniform = delay*4/5, delay*2/5, true
	cfg.Rules = gridRules(base.Rules, size)
	cfg.Workloads = []Workload{pattern.workload(size, len(cfg.Regions), base.Workloads)}
	return &cfg
}

// gridRules is a limit of the size with the budget that the first one of a set
// has. It is one of an aggregate, not of each of many entities.
func gridRules(set *rules.Set, size GridSize) *rules.Set {
	budget := ""
	if all := set.Rules(); len(all) > 0 && all[0].Limit != nil && all[0].Limit.HasBudget {
		b := uint64(all[0].Limit.Budget)
		percent := uint64(rules.Percent)
		budget = fmt.Sprintf(", overage_budget: %d.%04d%%", b/percent, b%percent)
	}
	return mustParse(&Config{}, fmt.Sprintf("domain: grid\ndescriptors:\n"+
		"  - key: org\n    value: acme\n    rate_limit: {unit: second, unit_multiplier: %d, requests_per_unit: %d%s}\n",
		size.Window/time.Second, size.Limit, budget))
}
