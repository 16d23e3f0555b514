package scenario

import (
	"time"

	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/internal/yamlpos"

	"github.com/georld/rld/rules"
)

// strict reads how keys are counted at owners.
func (s *scenario) strict(n *yamlpos.Node) {
	t := &s.cfg.Strict
	s.fields(
		n, "strict",
		field{"replicas", s.int(&t.Replicas, "replicas", 1, route.MaxReplicas)},
		field{"headroom", s.whole("headroom", 1, 10_000, func(v uint64) { t.Headroom = v })},
		field{"prefetch", s.whole("prefetch", 0, 1_000, func(v uint64) {
			if t.Prefetch = int(v); v == 0 {
				t.Prefetch = -1
			}
		})},
		field{"forward", s.duration(&t.Forward, "forward", time.Millisecond, 5*time.Second)},
		field{"margin", s.duration(&t.Margin, "margin", time.Millisecond, 5*time.Second)},
		field{"sync", s.duration(&t.Sync, "sync", time.Microsecond, time.Second)},
		field{"breaker", func(v *yamlpos.Node) { s.breaker(v, &t.Breaker) }},
	)
}

func (s *scenario) breaker(n *yamlpos.Node, b *breaker.Config) {
	var errors rules.PPM
	s.fields(
		n, "breaker",
		field{"calls", s.whole("calls", 1, 1_000_000, func(v uint64) { b.Calls = uint32(v) })},
		field{"errors", s.ppm(&errors, "errors")},
		field{"window", s.duration(&b.Window, "window", 100*time.Millisecond, time.Hour)},
		field{"open", s.duration(&b.Open, "open", time.Millisecond, time.Hour)},
	)
	b.Errors = uint32(errors)
}
