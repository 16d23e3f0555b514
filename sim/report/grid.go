package report

import (
	"slices"

	"github.com/georld/rld/sim"
)

// gridSize is the part of a grid that is of one length of windows and one age
// of views.
type gridSize struct {
	Window, Lag float64 // seconds
	Patterns    []string
	Rows        []gridRow
}

// gridRow is a policy, with a cell for each pattern.
type gridRow struct {
	Policy string
	Cells  []sim.GridCell
}

// sizes puts the cells of a grid in tables, in the order in which they come.
func sizes(all []sim.GridCell) []gridSize {
	var out []gridSize
	for _, c := range all {
		s := slices.IndexFunc(out, func(s gridSize) bool { return s.Window == c.WindowSeconds && s.Lag == c.LagSeconds })
		if s < 0 {
			s = len(out)
			out = append(out, gridSize{Window: c.WindowSeconds, Lag: c.LagSeconds})
		}
		size := &out[s]
		if !slices.Contains(size.Patterns, c.Pattern) {
			size.Patterns = append(size.Patterns, c.Pattern)
		}
		r := slices.IndexFunc(size.Rows, func(r gridRow) bool { return r.Policy == c.Policy })
		if r < 0 {
			r = len(size.Rows)
			size.Rows = append(size.Rows, gridRow{Policy: c.Policy})
		}
		size.Rows[r].Cells = append(size.Rows[r].Cells, c)
	}
	return out
}
