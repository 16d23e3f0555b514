package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// The grid of lags and windows keeps to what theory says of it: the naive rule
// to Theorem 1, and the estimate gate far below it. The table is printed with
// -v; -short plays fewer windows.
func TestGridKeepsToTheory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes hours of virtual time")
	}
	minutes := 6
	cells := GridCells()
	rows := make([]GridRow, len(cells))
	t.Run("cells", func(t *testing.T) { // returns when all are done
		for i, c := range cells {
			t.Run(fmt.Sprintf("%s-%gx", c.Scenario(), c.Load), func(t *testing.T) {
				t.Parallel()
				row, err := c.Play(minutes)
				if err != nil {
					t.Fatal(err)
				}
				rows[i] = row
				checkGridRow(t, row)
			})
		}
	})
	var b strings.Builder
	if err := FormatGrid(&b, rows); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
}

func checkGridRow(t *testing.T, r GridRow) {
	t.Helper()
	if off := math.Abs(r.Naive.Mean-r.Bound) / r.Bound; off > 0.2 {
		t.Errorf("naive at %gx: %v, %.0f %% off Theorem 1's %s", r.Load, r.Naive, 100*off, percent(r.Bound))
	}
	if r.Load == smoothLoad && r.Lag < r.Window/2 { // where k-1 caps nothing
		if off := math.Abs(r.Naive.Mean-r.Thumb) / r.Thumb; off > 0.2 {
			t.Errorf("naive at %gx: %v, and the rule of thumb says %s", r.Load, r.Naive, percent(r.Thumb))
		}
	}
	if r.Load == attackLoad && r.Window == time.Minute && r.Lag <= 2*time.Second {
		if r.Extrapolated.Mean > 0.03 || r.Extrapolated.Worst > 0.08 {
			t.Errorf("extrapolated at %gx: %v, want at most 3 %% and 8 %%", r.Load, r.Extrapolated)
		}
	}
	if r.Extrapolated.Mean > 1.05*r.Naive.Mean {
		t.Errorf("extrapolated %v is worse than naive %v", r.Extrapolated, r.Naive)
	}
}

// A cell says which scenario it is played by, and what is wrong with that.
func TestGridCellsHaveScenarios(t *testing.T) {
	for _, c := range GridCells() {
		if _, err := c.config(false, 1); err != nil {
			t.Error(err)
		}
	}
	if _, err := (GridCell{3 * time.Second, time.Minute, 1}).Play(1); err == nil || !strings.Contains(err.Error(), "lag-3s-window-1m") {
		t.Errorf("got %v, want it to name the scenario that is not there", err)
	}
}
