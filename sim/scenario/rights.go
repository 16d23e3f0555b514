package scenario

import (
	"time"

	"github.com/georld/rld/internal/yamlpos"
)

// rights reads how daemons share out rights.
func (s *scenario) rights(n *yamlpos.Node) {
	r := &s.cfg.Rights
	off := false
	weights := make([]int, len(s.cfg.Regions))
	var known []field
	for i, region := range s.cfg.Regions {
		known = append(known, field{region.Name, s.int(&weights[i], "the weight of "+region.Name, 0, 1_000_000)})
	}
	s.fields(
		n, "rights",
		field{"period", s.duration(&r.Period, "period", 5*time.Second, 10*time.Minute)},
		field{"daemon_horizon", func(v *yamlpos.Node) {
			if v.Kind == yamlpos.Scalar && v.Text == "off" {
				off = true
				return
			}
			s.duration(&r.DaemonHorizon, "daemon_horizon", time.Second, 24*time.Hour)(v)
		}},
		field{"interval", s.duration(&r.Interval, "interval", 10*time.Millisecond, 10*time.Second)},
		field{"wan_interval", s.duration(&r.WANInterval, "wan_interval", 10*time.Millisecond, 10*time.Second)},
		field{"ahead", s.duration(&r.Ahead, "ahead", time.Second, time.Minute)},
		field{"weights", func(v *yamlpos.Node) {
			s.fields(v, "weights", known...)
			r.Weights = nil
			for _, w := range weights {
				r.Weights = append(r.Weights, uint64(w))
			}
		}},
	)
	if off {
		r.DaemonHorizon = -1
	}
}
