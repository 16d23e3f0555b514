package scenario

import (
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/grid"
	"github.com/georld/rld/sim/load"
)

// grid reads a grid of policies. Fields that are left out stand for all of
// them.
func (s *scenario) grid(n *yamlpos.Node) {
	g := &grid.Grid{Policies: sim.Policies(), Patterns: grid.Patterns(), Windows: 12}
	s.cfg.Grid = g
	var sizes *yamlpos.Node
	s.fields(
		n, "grid",
		field{"policies", listOf(s, "policies", "policy", sim.Policies(), &g.Policies)},
		field{"patterns", listOf(s, "patterns", "pattern", grid.Patterns(), &g.Patterns)},
		field{"sizes", func(v *yamlpos.Node) { sizes = v }},
		field{"windows", s.int(&g.Windows, "windows", 1, grid.MaxWindows)},
	)
	if sizes == nil {
		s.fault(n, "add sizes: [{window: 1m, lag: 500ms, limit: 6000}]", "a grid without sizes")
		return
	}
	s.list(sizes, "sizes", grid.MaxSizes, func(item *yamlpos.Node) {
		size := grid.Size{Window: time.Minute, Lag: 500 * time.Millisecond, Limit: 6000}
		s.fields(
			item, "a size",
			field{"window", s.duration(&size.Window, "window", time.Second, grid.MaxWindow)},
			field{"lag", s.duration(&size.Lag, "lag", 20*time.Millisecond, grid.MaxWindow)},
			field{"limit", s.int(&size.Limit, "limit", 1, load.MaxRate)},
		)
		g.Sizes = append(g.Sizes, size)
	})
}
