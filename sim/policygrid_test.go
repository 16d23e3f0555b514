package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// small parts of the grid that comes with the program: what is far from the
// design is found, and no policy with rights exceeds them.
func TestBudgetsGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("takes hours of virtual time")
	}
	base, ok := Builtin("budgets-grid")
	if !ok || base.Grid == nil {
		t.Fatal("no grid")
	}
	cells := make(map[string]GridCellResult)
	for _, pattern := range Patterns() {
		cfg := *base
		g := *base.Grid
		cfg.Grid = &g
		g.Patterns, g.Windows = []Pattern{pattern}, 3
		g.Sizes = []GridSize{{10 * time.Second, 500 * time.Millisecond, 300}}
		r, err := Run(&cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Code() != ExitFine || len(r.Grid) != len(g.Policies) {
			t.Errorf("%v: %d cells, %+v", pattern, len(r.Grid), violated(r))
		}
		for _, c := range r.Grid {
			cells[c.Pattern+" "+c.Policy] = c
			p, _ := PolicyNamed(c.Policy)
			if p.hasRights() && c.Exceeded > 0 || p.plain() && c.OverageWorst > 0 || p.hasRights() && c.OverageWorst > 0.1 {
				t.Errorf("%s under %s went over: %+v", c.Pattern, c.Policy, c)
			}
			t.Logf("%-10s %-12s %5.1f%%/%5.1f%% | %4.1f%%, %.3f messages", c.Pattern, c.Policy,
				100*c.OverageMean, 100*c.OverageWorst, 100*c.FalseDenial, c.Donations)
		}
	}
	for _, want := range []struct {
		cell      string
		low, high float64 // of the mean overage
	}{
		{"syncburst naive", 1.9, 2}, {"syncburst extrapolated", 1.9, 2}, {"syncburst cap", 0.09, 0.1},
		{"syncburst budgeted", 0.09, 0.1}, {"smooth1.5 naive", 0.02, 0.06}, {"moving0.8 naive", 0, 0},
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

// What the design has stands at the cells it is of.
func TestDesignOfCells(t *testing.T) {
	base, _ := Builtin("budgets-grid")
	for _, size := range base.Grid.Sizes {
		for _, pattern := range Patterns() {
			for _, p := range Policies() {
				if designFor(size, pattern, p) == nil {
					t.Errorf("nothing of %v under %v at %+v", p, pattern, size)
				}
			}
		}
	}
	if designFor(GridSize{time.Hour, time.Second, 1}, Smooth, Naive) != nil {
		t.Error("something of a size that was not played")
	}
}

func TestGridIsValidated(t *testing.T) {
	base, _ := Builtin("budgets-grid")
	for want, change := range map[string]func(*PolicyGrid){
		"0 policies":        func(g *PolicyGrid) { g.Policies = nil },
		"grid of 0 windows": func(g *PolicyGrid) { g.Windows = 0 },
		"lag 2s":            func(g *PolicyGrid) { g.Sizes = []GridSize{{time.Second, 2 * time.Second, 10}} },
		"limit 0":           func(g *PolicyGrid) { g.Sizes = []GridSize{{time.Second, time.Second, 0}} },
	} {
		cfg, g := *base, *base.Grid
		cfg.Grid = &g
		change(&g)
		if _, err := Run(&cfg, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	if got := fmt.Sprint(Pattern(99), Policy(99)); got != "unknown unknown" {
		t.Error(got)
	}
}
