package sim

import (
	"time"

	"github.com/georld/rld/internal/yamlpos"
)

// grid reads a grid of policies. What it leaves out is all of them.
func (s *scenario) grid(n *yamlpos.Node) {
	g := &PolicyGrid{Policies: Policies(), Patterns: Patterns(), Windows: 12}
	s.cfg.Grid = g
	var sizes *yamlpos.Node
	s.fields(
		n, "grid",
		field{"policies", func(v *yamlpos.Node) {
			g.Policies = nil
			s.list(v, "policies", policyKinds, func(item *yamlpos.Node) {
				s.word("policy", policyNames[:], func(i int) { g.Policies = append(g.Policies, Policy(i)) })(item)
			})
		}},
		field{"patterns", func(v *yamlpos.Node) {
			g.Patterns = nil
			s.list(v, "patterns", patternKinds, func(item *yamlpos.Node) {
				s.word("pattern", patternNames[:], func(i int) { g.Patterns = append(g.Patterns, Pattern(i)) })(item)
			})
		}},
		field{"sizes", func(v *yamlpos.Node) { sizes = v }},
		field{"windows", s.int(&g.Windows, "windows", 1, maxGridWindows)},
	)
	if sizes == nil {
		s.fault(n, "add sizes: [{window: 1m, lag: 500ms, limit: 6000}]", "a grid without sizes")
		return
	}
	s.list(sizes, "sizes", maxGridSizes, func(item *yamlpos.Node) {
		size := GridSize{Window: time.Minute, Lag: 500 * time.Millisecond, Limit: 6000}
		s.fields(
			item, "a size",
			field{"window", s.duration(&size.Window, "window", time.Second, maxGridWindow)},
			field{"lag", s.duration(&size.Lag, "lag", 20*time.Millisecond, maxGridWindow)},
			field{"limit", s.int(&size.Limit, "limit", 1, MaxRate)},
		)
		g.Sizes = append(g.Sizes, size)
	})
}
