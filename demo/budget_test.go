//go:build e2e

package demo

import "testing"

// TestABudgetHoldsThroughACut has three times the usual traffic on a rule with
// a budget of 2 %, and a region cut off meanwhile: no window ever goes beyond
// it, the region goes on with its share, and so do the others.
func TestABudgetHoldsThroughACut(t *testing.T) {
	o, out := small(t, "sleep 1; budget spread 2%; surge spread 3x; sleep 11; cut eu-west; sleep 22; heal; sleep 12; quit")
	o.Daemons, o.WAN, o.Traffic = 3, Global, 500
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	seen, cut := false, map[string]int{}
	for _, r := range reports(t, out.String()) {
		row := r.Rules[spread]
		if row.SinceBudget == nil {
			continue
		}
		seen = true
		if *row.SinceBudget > 0.02 || row.Bound != 0.02 {
			t.Fatalf("after %v s a window was %v over, bound %v: %+v", r.Seconds, *row.SinceBudget, row.Bound, row)
		}
		if len(r.WAN.Parts) == 2 {
			for region, n := range row.Admitted {
				cut[region] = max(cut[region], n)
			}
		}
	}
	if !seen {
		t.Fatal("no report is of the budget")
	}
	for _, region := range o.Regions {
		if cut[region] < 95 { // of 102
			t.Errorf("%s admitted %d in its best window while eu-west was cut off, want its share of 306", region, cut[region])
		}
	}
}
