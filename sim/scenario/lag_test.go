package scenario

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/sim"
)

// lagCell is one combination of how old views are, how long windows are and
// how much is asked for: one of the scenarios lag-LAG-window-WINDOW at a load.
type lagCell struct {
	Lag, Window time.Duration
	// Load is the rate as a multiple of the limit. All regions have as much.
	Load float64
}

// The loads of the grid: a smooth one somewhat above the limit, and an attack.
const (
	smoothLoad = 1.5
	attackLoad = 20
)

// lagCells lists the grid: 500 ms, 2 s and 10 s of lag, windows of 1 s, 10 s
// and a minute, both loads.
func lagCells() []lagCell {
	var all []lagCell
	for _, window := range []time.Duration{time.Minute, 10 * time.Second, time.Second} {
		for _, lag := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 10 * time.Second} {
			for _, load := range []float64{smoothLoad, attackLoad} {
				all = append(all, lagCell{lag, window, load})
			}
		}
	}
	return all
}

// scenario returns the name of the scenario that the cell is played by.
func (c lagCell) scenario() string { return "lag-" + inUnit(c.Lag) + "-window-" + inUnit(c.Window) }

// inUnit writes a time of the grid in its greatest unit.
func inUnit(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// lagRow is what came of a cell. Ratios are fractions of the limit.
type lagRow struct {
	lagCell
	Windows int // that were played under each rule
	Limit   uint64
	// Thumb is the rule of thumb: lag by window. Bound is Theorem 1 for smooth
	// traffic of equal weights, with its cap of a limit for each region but
	// one: min{k-1, R-1, (R-1)/R k lag/W}.
	Thumb, Bound float64
	// Naive decides by merged counts alone, Extrapolated also by the estimated
	// hits of others since.
	Naive, Extrapolated lagFigure
}

// lagFigure is the overage of the windows of a run, as ratios of the limit. A
// window below the limit counts as 0.
type lagFigure struct{ mean, worst float64 }

// play plays a cell under both rules.
func (c lagCell) play(minutes int) (lagRow, error) {
	row := lagRow{lagCell: c, Windows: c.windows(minutes), Thumb: float64(c.Lag) / float64(c.Window)}
	regions := 0.0
	for _, naive := range []bool{true, false} {
		cfg, err := c.config(naive, row.Windows)
		if err != nil {
			return row, err
		}
		regions, row.Limit = float64(len(cfg.Regions)), uint64(cfg.Rules.Rules()[0].Limit.Requests)
		figure, err := measure(cfg, c.Window)
		if err != nil {
			return row, err
		}
		if naive {
			row.Naive = figure
		} else {
			row.Extrapolated = figure
		}
	}
	row.Bound = min(c.Load-1, regions-1, (regions-1)/regions*c.Load*row.Thumb)
	return row, nil
}

// windows is how many windows are played: shorter ones differ more.
func (c lagCell) windows(minutes int) int {
	return int(math.Ceil(float64(minutes) * math.Sqrt(float64(time.Minute)/float64(c.Window))))
}

// config is the scenario of the cell at its load, for as long as is played.
func (c lagCell) config(naive bool, windows int) (*sim.Config, error) {
	name := c.scenario()
	cfg, ok := Builtin(name)
	if !ok {
		return nil, fmt.Errorf("sim: no scenario %s", name)
	}
	limit := cfg.Rules.Rules()[0].Limit
	lag := cfg.Network.Across.Delay + cfg.Node.Gossip.WANInterval/2
	if lag != c.Lag || limit.Window() != c.Window.Milliseconds() || len(cfg.Workloads) != 1 {
		return nil, fmt.Errorf("sim: scenario %s has a lag of %v, a window of %d ms and %d workloads, want %v, %d ms and 1",
			name, lag, limit.Window(), len(cfg.Workloads), c.Lag, c.Window.Milliseconds())
	}
	cfg.Node.Naive = naive
	cfg.Duration = time.Duration(windows) * c.Window
	cfg.Workloads[0].Rate = c.Load * float64(limit.Requests) / c.Window.Seconds()
	return cfg, cfg.Validate()
}

// measure plays a configuration of one key and looks at its windows.
func measure(cfg *sim.Config, window time.Duration) (f lagFigure, err error) {
	admitted := make([]uint64, cfg.Duration/window)
	_, err = sim.Run(cfg, sim.Options{Auditors: func(*sim.World) []*sim.Auditor {
		return []*sim.Auditor{{Decided: func(d *sim.Decided) {
			if i := int(d.At / window); d.Allowed && i < len(admitted) {
				admitted[i] += d.Hits
			}
		}}}
	}})
	limit := float64(cfg.Rules.Rules()[0].Limit.Requests)
	for _, n := range admitted {
		over := max(0, float64(n)-limit) / limit
		f.mean += over / float64(len(admitted))
		f.worst = max(f.worst, over)
	}
	return f, err
}

// The grid of lags and windows agrees with theory: the naive rule with Theorem
// 1, and the estimate gate is far below it.
func TestLagScenariosKeepToTheory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes hours of virtual time")
	}
	minutes := 6
	cells := lagCells()
	rows := make([]lagRow, len(cells))
	t.Run("cells", func(t *testing.T) { // returns when all are done
		for i, c := range cells {
			t.Run(fmt.Sprintf("%s-%gx", c.scenario(), c.Load), func(t *testing.T) {
				t.Parallel()
				row, err := c.play(minutes)
				if err != nil {
					t.Fatal(err)
				}
				rows[i] = row
				checklagRow(t, row)
			})
		}
	})
}

func checklagRow(t *testing.T, r lagRow) {
	t.Helper()
	if off := math.Abs(r.Naive.mean-r.Bound) / r.Bound; off > 0.2 {
		t.Errorf("naive at %gx: %v, %.0f %% off Theorem 1's %s", r.Load, r.Naive, 100*off, fmt.Sprint(r.Bound))
	}
	if r.Load == smoothLoad && r.Lag < r.Window/2 { // where k-1 caps nothing
		if off := math.Abs(r.Naive.mean-r.Thumb) / r.Thumb; off > 0.2 {
			t.Errorf("naive at %gx: %v, and the rule of thumb says %s", r.Load, r.Naive, fmt.Sprint(r.Thumb))
		}
	}
	if r.Load == attackLoad && r.Window == time.Minute && r.Lag <= 2*time.Second {
		if r.Extrapolated.mean > 0.03 || r.Extrapolated.worst > 0.08 {
			t.Errorf("extrapolated at %gx: %v, want at most 3 %% and 8 %%", r.Load, r.Extrapolated)
		}
	}
	if r.Extrapolated.mean > 1.05*r.Naive.mean {
		t.Errorf("extrapolated %v is worse than naive %v", r.Extrapolated, r.Naive)
	}
}

// A cell names the scenario that plays it, and its fault.
func TestLagCellsHaveScenarios(t *testing.T) {
	for _, c := range lagCells() {
		if _, err := c.config(false, 1); err != nil {
			t.Error(err)
		}
	}
	if _, err := (lagCell{3 * time.Second, time.Minute, 1}).play(1); err == nil || !strings.Contains(err.Error(), "lag-3s-window-1m") {
		t.Errorf("got %v, want it to name the scenario that is not there", err)
	}
}
