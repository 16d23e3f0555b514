package scenario

import (
	"fmt"
	"math"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// maxScenarioBytes bounds a scenario file.
const maxScenarioBytes = 1 << 20

// field is a field of a map and the Reader of its value.
type field struct {
	Name string
	Read yamlpos.Reader
}

// fields reads a map and reports whether it has no faults. Its name is for
// messages: "a workload".
func (s *scenario) fields(n *yamlpos.Node, name string, known ...field) bool {
	all := make([]yamlpos.Field, len(known))
	for i, f := range known {
		all[i] = yamlpos.Field(f)
	}
	return s.Fields(n, name, all...)
}

// optional returns a Reader of a map that sets out to a value and reads the
// fields of that value.
func optional[T any](s *scenario, out **T, value *T, known ...field) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		*out = value
		return s.fields(n, name, known...)
	}
}

// list returns a Reader of a list of at most most items.
func (s *scenario) list(most int, item func(n *yamlpos.Node) bool) yamlpos.Reader {
	return s.ListOf(most, "- name: value", item)
}

// whole returns a Reader of a whole number from low to high.
func whole[T yamlpos.Integer](s *scenario, out *T, low, high T) yamlpos.Reader {
	return yamlpos.Whole(&s.Collector, out, low, high)
}

// share returns a Reader of a percentage of at most high, as a fraction of 1.
func (s *scenario) share(out *float64, high float64) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		var p rules.PPM
		if !yamlpos.Percent(&s.Collector, &p, "2.5%")(n, name) {
			return false
		}
		f := float64(p) / float64(rules.Whole)
		if f > high && !math.IsInf(high, 1) {
			return s.Errorf(n.Pos, fmt.Sprintf("write at most %.1f%%", 100*high), "%s is %s", name, n.Text)
		}
		*out = f
		return true
	}
}

// ppm returns a Reader of a percentage of at most 100%, in parts per million.
func ppm[T ~uint32](s *scenario, out *T) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		f := 0.0
		if !s.share(&f, 1)(n, name) {
			return false
		}
		*out = T(math.Round(f * float64(rules.Whole)))
		return true
	}
}
