package scenario

import (
	"time"

	"github.com/georld/rld/internal/yamlpos"
)

// strict reads how keys are counted at owners.
func (s *scenario) strict(n *yamlpos.Node, name string) bool {
	t := &s.cfg.Strict
	return s.fields(
		n, name,
		field{"headroom", whole(s, &t.Headroom, 1, 10_000)},
		field{"prefetch", whole(s, &t.Prefetch, 0, 1_000)},
		field{"forward", s.Duration(&t.Forward, time.Millisecond, 5*time.Second)},
		field{"margin", s.Duration(&t.Margin, time.Millisecond, 5*time.Second)},
		field{"sync", s.Duration(&t.Sync, time.Microsecond, time.Second)},
		field{"breaker", s.breaker},
		field{"waiters", whole(s, &t.Waiters, 1, 1<<16)},
		field{"queue", whole(s, &t.Queue, 1, 1<<12)},
		field{"voter_keys", whole(s, &t.VoterKeys, 1, 1_000_000)},
	)
}

func (s *scenario) breaker(n *yamlpos.Node, name string) bool {
	b := &s.cfg.Strict.Breaker
	return s.fields(
		n, name,
		field{"calls", whole(s, &b.Calls, 1, 1_000_000)},
		field{"errors", ppm(s, &b.Errors)},
		field{"window", s.Duration(&b.Window, 100*time.Millisecond, time.Hour)},
		field{"open", s.Duration(&b.Open, time.Millisecond, time.Hour)},
	)
}
