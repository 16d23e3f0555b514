package scenario

import (
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/sim"
)

// control reads the control log of a run.
func (s *scenario) control(n *yamlpos.Node, name string) bool {
	c := &control.Config{}
	s.cfg.Control = c
	return s.fields(
		n, name,
		field{"founders", s.placeList(&c.Founders)},
		field{"begin", s.Duration(&s.cfg.Begin, 0, sim.MaxDuration)},
		field{"diskless", s.placeList(&s.cfg.Diskless)},
		field{"heartbeat", s.Duration(&c.Heartbeat, time.Millisecond, time.Minute)},
		field{"compare", s.Duration(&c.Compare, time.Millisecond, time.Minute)},
		field{"stable", s.Duration(&c.Stable, time.Millisecond, time.Hour)},
		field{"replace_after", s.Duration(&c.ReplaceAfter, time.Millisecond, 24*time.Hour)},
		field{"remove_after", s.Duration(&c.RemoveAfter, time.Millisecond, 24*time.Hour)},
		field{"format_after", s.Duration(&c.FormatAfter, time.Millisecond, 24*time.Hour)},
		field{"entries", whole(s, &c.Entries, 1, 1<<16)},
	)
}

// controlNode returns the fields of the control log of a run, nil for none.
func controlNode(c *sim.Config) *yamlpos.Node {
	x := c.Control
	if x == nil {
		return nil
	}
	f := fieldsOf{}
	f.places("founders", x.Founders)
	f.time("begin", c.Begin, 0)
	f.places("diskless", c.Diskless)
	f.time("heartbeat", x.Heartbeat, 0)
	f.time("compare", x.Compare, 0)
	f.time("stable", x.Stable, 0)
	f.time("replace_after", x.ReplaceAfter, 0)
	f.time("remove_after", x.RemoveAfter, 0)
	f.time("format_after", x.FormatAfter, 0)
	f.number("entries", x.Entries, 0)
	return yamlpos.NewMap(f...)
}
