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
func (s *scenario) grid(n *yamlpos.Node, name string) bool {
	g := &grid.Grid{Policies: sim.Policies(), Patterns: grid.Patterns(), Windows: 12}
	s.cfg.Grid = g
	good := s.fields(
		n, name,
		field{"policies", listOf(s, "policy", sim.Policies(), &g.Policies)},
		field{"patterns", listOf(s, "pattern", grid.Patterns(), &g.Patterns)},
		field{"sizes", s.list(grid.MaxSizes, func(item *yamlpos.Node) bool {
			size := grid.Size{Window: time.Minute, Lag: 500 * time.Millisecond, Limit: 6000}
			read := s.fields(
				item, "a size",
				field{"window", s.Duration(&size.Window, time.Second, grid.MaxWindow)},
				field{"lag", s.Duration(&size.Lag, 20*time.Millisecond, grid.MaxWindow)},
				field{"limit", whole(s, &size.Limit, 1, load.MaxRate)},
			)
			g.Sizes = append(g.Sizes, size)
			return read
		})},
		field{"windows", whole(s, &g.Windows, 1, grid.MaxWindows)},
	)
	if len(g.Sizes) == 0 {
		s.Errorf(n.Pos, "add sizes: [{window: 1m, lag: 500ms, limit: 6000}]", "a grid without sizes")
	}
	return good
}
