package wire

import "github.com/georld/rld/gossip"

// hint is the measurement that a cell travels with: a daemon's of its bucket,
// a region's of its growth.
func hint(c *gossip.Cell) uint32 {
	if c.Kind == gossip.Daemon {
		return c.Level
	}
	return c.Rate
}

func setHint(c *gossip.Cell, v uint32) {
	if c.Kind == gossip.Daemon {
		c.Level = v
	} else {
		c.Rate = v
	}
}
