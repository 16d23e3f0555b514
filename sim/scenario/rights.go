package scenario

import (
	"time"

	"github.com/georld/rld/internal/yamlpos"
)

// rights reads how daemons share out rights.
func (s *scenario) rights(n *yamlpos.Node, name string) bool {
	r := &s.cfg.Rights
	horizon := s.Duration(&r.DaemonHorizon, time.Second, 24*time.Hour)
	return s.fields(
		n, name,
		field{"period", s.Duration(&r.Period, 5*time.Second, 10*time.Minute)},
		field{"daemon_horizon", func(v *yamlpos.Node, name string) bool {
			if v.Kind == yamlpos.Scalar && v.Text == "off" {
				r.DaemonHorizon = 0
				return true
			}
			return horizon(v, name)
		}},
		field{"interval", s.Duration(&r.Interval, 10*time.Millisecond, 10*time.Second)},
		field{"wan_interval", s.Duration(&r.WANInterval, 10*time.Millisecond, 10*time.Second)},
		field{"ahead", s.Duration(&r.Ahead, time.Second, time.Minute)},
		field{"weights", func(v *yamlpos.Node, name string) bool {
			r.Weights = make([]uint64, len(s.cfg.Regions))
			return s.byRegion(v, name, func(i int) yamlpos.Reader { return whole(s, &r.Weights[i], 0, 1_000_000) })
		}},
	)
}

// byRegion reads a map of regions. weight returns the Reader of a region's
// weight.
func (s *scenario) byRegion(n *yamlpos.Node, name string, weight func(region int) yamlpos.Reader) bool {
	var known []field
	for i, r := range s.cfg.Regions {
		known = append(known, field{r.Name, func(v *yamlpos.Node, _ string) bool {
			return weight(i)(v, "the weight of "+r.Name)
		}})
	}
	return s.fields(n, name, known...)
}
