package sim

import (
	"time"

	"github.com/georld/rld/internal/breaker"

	"github.com/georld/rld/crdt"
)

// circuits are a process's breakers, one a home.
type circuits struct {
	cfg  breaker.Config
	byID map[crdt.Incarnation]*breaker.Breaker
}

func newCircuits(cfg breaker.Config) circuits {
	return circuits{cfg, make(map[crdt.Incarnation]*breaker.Breaker)}
}

// passes reports whether a home may be asked.
func (c *circuits) passes(at time.Duration, owner crdt.Incarnation) bool {
	b := c.byID[owner]
	return b == nil || b.Passes(at)
}

// claim notes that a call waits for a home.
func (c *circuits) claim(at time.Duration, owner crdt.Incarnation) {
	b := c.byID[owner]
	if b == nil {
		b = breaker.New(c.cfg)
		c.byID[owner] = b
	}
	b.Allow(at)
}

// release notes what became of a call that waited for a home.
func (c *circuits) release(at time.Duration, owner crdt.Incarnation, answered bool) {
	if b := c.byID[owner]; b != nil {
		b.Done(at, answered)
	}
}
