package sim

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
)

// circuits are a process's breakers, one a home.
type circuits struct {
	cfg  sticky.BreakerConfig
	byID map[crdt.Slot]*sticky.Breaker
}

func newCircuits(cfg sticky.BreakerConfig) circuits {
	return circuits{cfg, make(map[crdt.Slot]*sticky.Breaker)}
}

// passes reports whether a home may be asked.
func (c *circuits) passes(at time.Duration, home crdt.Slot) bool {
	b := c.byID[home]
	return b == nil || b.Passes(at)
}

// claim notes that a call waits for a home.
func (c *circuits) claim(at time.Duration, home crdt.Slot) {
	b := c.byID[home]
	if b == nil {
		b = sticky.NewBreaker(c.cfg)
		c.byID[home] = b
	}
	b.Allow(at)
}

// release notes what became of a call that waited for a home.
func (c *circuits) release(at time.Duration, home crdt.Slot, answered bool) {
	if b := c.byID[home]; b != nil {
		b.Done(at, answered)
	}
}
