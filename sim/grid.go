package sim

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// GridCell is one combination of how old views are, how long windows are and
// how much is asked for: one of the scenarios lag-LAG-window-WINDOW at a load.
type GridCell struct {
	Lag, Window time.Duration
	// Load is the rate as a multiple of the limit. All regions have as much.
	Load float64
}

// The loads of the grid: a smooth one somewhat above the limit, and an attack.
const (
	smoothLoad = 1.5
	attackLoad = 20
)

// GridCells lists the grid: 500 ms, 2 s and 10 s of lag, windows of 1 s, 10 s
// and a minute, both loads.
func GridCells() []GridCell {
	var all []GridCell
	for _, window := range []time.Duration{time.Minute, 10 * time.Second, time.Second} {
		for _, lag := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 10 * time.Second} {
			for _, load := range []float64{smoothLoad, attackLoad} {
				all = append(all, GridCell{lag, window, load})
			}
		}
	}
	return all
}

// Scenario returns the name of the scenario that the cell is played by.
func (c GridCell) Scenario() string { return "lag-" + inUnit(c.Lag) + "-window-" + inUnit(c.Window) }

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

// GridRow is what came of a cell. Ratios are fractions of the limit.
type GridRow struct {
	GridCell
	Windows int // that were played under each rule
	Limit   uint64
	// Thumb is the rule of thumb: lag by window. Bound is Theorem 1 for smooth
	// traffic of equal weights, with its cap of a limit for each region but
	// one: min{k-1, R-1, (R-1)/R k lag/W}.
	Thumb, Bound float64
	// Age is the median age of views by the echo of nonces, which is all that
	// a daemon can be sure of: the way there is in it as well, so that it is
	// about twice the lag.
	Age time.Duration
	// Naive decides by merged counts alone, Extrapolated by what others are
	// estimated to have admitted since.
	Naive, Extrapolated GridFigure
}

// GridFigure is the overage of the windows of a run, a window below the limit
// counting as none, and the mean share of the limit that was denied falsely.
type GridFigure struct{ Mean, Worst, Under float64 }

// Grid plays every cell for so many windows of a minute; of shorter windows it
// plays more.
func Grid(minutes int) ([]GridRow, error) {
	var rows []GridRow
	for _, c := range GridCells() {
		row, err := c.Play(minutes)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Play plays a cell under both rules.
func (c GridCell) Play(minutes int) (GridRow, error) {
	row := GridRow{GridCell: c, Windows: c.windows(minutes), Thumb: float64(c.Lag) / float64(c.Window)}
	regions := 0.0
	for _, naive := range []bool{true, false} {
		cfg, err := c.config(naive, row.Windows)
		if err != nil {
			return row, err
		}
		regions, row.Limit = float64(len(cfg.Regions)), uint64(cfg.Rules.Rules()[0].Limit.Requests)
		figure, age, err := measure(cfg, c.Window)
		if err != nil {
			return row, err
		}
		if naive {
			row.Naive, row.Age = figure, age
		} else {
			row.Extrapolated = figure
		}
	}
	row.Bound = min(c.Load-1, regions-1, (regions-1)/regions*c.Load*row.Thumb)
	return row, nil
}

// windows is how many windows are played: shorter ones differ more.
func (c GridCell) windows(minutes int) int {
	return int(math.Ceil(float64(minutes) * math.Sqrt(float64(time.Minute)/float64(c.Window))))
}

// config is the scenario of the cell at its load, for as long as is played.
func (c GridCell) config(naive bool, windows int) (*Config, error) {
	name := c.Scenario()
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
func measure(cfg *Config, window time.Duration) (f GridFigure, age time.Duration, err error) {
	w := newWorld(cfg)
	g := newGauge(window, cfg.Duration)
	w.auditors = []Auditor{g}
	w.prepare()
	w.runUntil(cfg.Duration)
	if w.failed != nil {
		return f, 0, w.failed
	}
	limit := uint64(cfg.Rules.Rules()[0].Limit.Requests)
	f.Mean, f.Worst = g.overage(limit, 0)
	for i := range g.admitted {
		f.Under += float64(missing(limit, g.asked[i], g.admitted[i])) / float64(limit) / float64(len(g.admitted))
	}
	return f, w.views.across.quantile(0.5), nil
}

// FormatGrid writes the rows as a table beside the figures of the small
// simulations that the estimate gate was designed with. Cells that those did
// not play have none.
func FormatGrid(w io.Writer, rows []GridRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "window\tlag\tload\twindows\tage by echo\tlag/window\tTheorem 1\tnaive\tdesign\textrapolated\tdesign\tfalsely denied\t\t")
	for _, r := range rows {
		note := ""
		if r.Lag >= r.Window {
			note = "lag >= window"
		}
		d := designOf(r.GridCell)
		fmt.Fprintf(t, "%s\t%s\t%gx\t%d\t%dms\t%s\t%s\t%v\t%v\t%v\t%v\t%s\t%s\t\n",
			inUnit(r.Window), inUnit(r.Lag), r.Load, r.Windows, r.Age.Milliseconds(), percent(r.Thumb), percent(r.Bound),
			r.Naive, d.naive, r.Extrapolated, d.extrapolated, percent(r.Extrapolated.Under), note)
	}
	return t.Flush()
}

// String writes mean and worst.
func (f GridFigure) String() string {
	switch {
	case f.Worst == notGiven && f.Mean == notGiven:
		return "-"
	case f.Worst == notGiven:
		return percent(f.Mean) + " / -"
	}
	return percent(f.Mean) + " / " + percent(f.Worst)
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
