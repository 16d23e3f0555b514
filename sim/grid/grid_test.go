package grid_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/grid"
	"github.com/georld/rld/sim/scenario"
)

// Small parts of the built-in grid: deviations from the design are found, and
// no policy with rights exceeds them.
func TestBudgetsGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("takes hours of virtual time")
	}
	base, ok := scenario.Builtin("budgets-grid")
	if !ok || base.Grid == nil {
		t.Fatal("no grid")
	}
	cells := make(map[string]sim.GridCell)
	for _, pattern := range grid.Patterns() {
		cfg := *base
		g := *base.Grid.(*grid.Grid)
		cfg.Grid = &g
		g.Patterns, g.Windows = []grid.Pattern{pattern}, 3
		g.Sizes = []grid.Size{{10 * time.Second, 500 * time.Millisecond, 300}}
		r, err := sim.Run(&cfg, sim.Options{Auditors: audit.Only("rights", "admitted")})
		if err != nil {
			t.Fatal(err)
		}
		if r.Code() != sim.ExitFine || len(r.Grid) != len(g.Policies) {
			t.Errorf("%v: %d cells, %+v", pattern, len(r.Grid), r.Auditors)
		}
		for _, c := range r.Grid {
			cells[c.Pattern+" "+c.Policy] = c
			p, _ := sim.PolicyNamed(c.Policy)
			if p.HasRights() && c.Exceeded > 0 || p.Plain() && c.OverageWorst > 0 || p.HasRights() && c.OverageWorst > 0.1 {
				t.Errorf("%s under %s went over: %+v", c.Pattern, c.Policy, c)
			}
		}
	}
	for _, want := range []struct {
		cell      string
		low, high float64 // of the mean overage
	}{
		{"syncburst naive", 1.9, 2},
		{"syncburst extrapolated", 0, 0.3}, // some windows come before the prior is used
		{"syncburst cap", 0.09, 0.1},
		{"syncburst budgeted", 0.09, 0.1},
		{"smooth1.5 naive", 0.02, 0.06},
		{"moving0.8 naive", 0, 0},
	} {
		if c := cells[want.cell]; c.OverageMean < want.low || c.OverageMean > want.high {
			t.Errorf("%s: overage %g, want %g to %g", want.cell, c.OverageMean, want.low, want.high)
		}
	}
	for _, order := range []string{
		"moving0.8 budgeted < cap", "bursty1.2 budgeted < cap", "bursty1.2 partition < static", "moving0.8 partition < static",
		"smooth1.5 cap < static",
	} {
		pattern, rest, _ := strings.Cut(order, " ")
		less, more, _ := strings.Cut(rest, " < ")
		a, b := cells[pattern+" "+less].FalseDenial, cells[pattern+" "+more].FalseDenial
		if a >= b {
			t.Errorf("%s: false denials %g and %g", order, a, b)
		}
	}
}

// TestPriorsOfShortWindows: in windows of a second the loads before leave an
// attack little above the limit, though each window begins without any counts,
// and nothing is sent in most of the time. All auditors agree.
func TestPriorsOfShortWindows(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	base, _ := scenario.Builtin("budgets-grid")
	cfg, g := *base, *base.Grid.(*grid.Grid)
	cfg.Grid = &g
	g.Patterns, g.Policies, g.Windows = []grid.Pattern{grid.Attack, grid.SyncBurst}, []sim.Policy{sim.Extrapolated}, 1
	g.Sizes = []grid.Size{{time.Second, 100 * time.Millisecond, 300}}
	r, err := sim.Run(&cfg, sim.Options{Auditors: audit.All})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Grid {
		if c.OverageMean > 0.05 {
			t.Errorf("%s: overage %g, want 0.05 at most", c.Pattern, c.OverageMean)
		}
	}
	for _, a := range r.Auditors {
		if a.Violations > 0 {
			t.Errorf("%s: %d of %d: %s", a.Name, a.Violations, a.Checks, a.First)
		}
	}
}

func TestGridIsValidated(t *testing.T) {
	base, _ := scenario.Builtin("budgets-grid")
	for want, change := range map[string]func(*grid.Grid){
		"0 policies":        func(g *grid.Grid) { g.Policies = nil },
		"grid of 0 windows": func(g *grid.Grid) { g.Windows = 0 },
		"lag 2s":            func(g *grid.Grid) { g.Sizes = []grid.Size{{time.Second, 2 * time.Second, 10}} },
		"limit 0":           func(g *grid.Grid) { g.Sizes = []grid.Size{{time.Second, time.Second, 0}} },
	} {
		cfg, g := *base, *base.Grid.(*grid.Grid)
		cfg.Grid = &g
		change(&g)
		if _, err := sim.Run(&cfg, sim.Options{Auditors: audit.Only("rights", "admitted")}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	if got := fmt.Sprint(grid.Pattern(99), sim.Policy(99)); got != "unknown unknown" {
		t.Error(got)
	}
}
