package quorum

import (
	"cmp"
	"fmt"
	"time"

	"github.com/georld/rld/sticky/route"
)

// Config is the identity and the bounds of an acceptor.
type Config struct {
	// Region and Name are this daemon's. The name is the same across restarts.
	Region, Name string
	// Genesis is the first layout, in which the voters of other regions may be
	// left out. It must be the same at all daemons. A stored layout takes
	// precedence.
	Genesis route.Layout
	// Diskless daemons lose their state when they stop. They never vote, also
	// if a layout names them.
	Diskless bool
	// MaxKeys bounds the keys, default 1,000,000, at about 200 bytes each in
	// memory. Those beyond it share 1,024 records, and may be denied falsely.
	MaxKeys int
	// MaxOffset is how far the clocks of two daemons may be apart, default 500
	// ms. It delays forgetting; no count depends on it.
	MaxOffset time.Duration
}

// DefaultMaxKeys is the default of Config.MaxKeys.
const DefaultMaxKeys = 1_000_000

// Start is the state that a daemon starts with.
type Start struct {
	// Stored is the state on disk, nil if there is none.
	Stored *Stored
	// First reports that there is none because the daemon never ran in this
	// region under this name. If it is set for a daemon that lost its disk,
	// limits of strict keys may be exceeded.
	First bool
	// Generation is the new store number of a daemon without Stored and First.
	// It must be above all earlier ones, as Unix milliseconds are.
	Generation uint64
	// Failed is the error of a disk that cannot be used now. The acceptor knows
	// the layout of Stored, the first one if that is nil, and does not vote.
	Failed error
}

// Validate returns an error that names the first field that is not valid, and
// its valid values.
func (c *Config) Validate() error {
	switch err := c.Genesis.Validate(); {
	case c.Name == "" || len(c.Name) > route.MaxName:
		return fmt.Errorf("daemon name of %d bytes: want 1 to %d", len(c.Name), route.MaxName)
	case c.Genesis.Number != 1:
		return fmt.Errorf("first layout with number %d: want 1", c.Genesis.Number)
	case err != nil:
		return err
	case c.Genesis.Region(c.Region) == nil:
		return fmt.Errorf("region %q is not in the layout: add it there", c.Region)
	case c.MaxKeys < 0:
		return fmt.Errorf("room for %d keys: want 1 and more", c.MaxKeys)
	case c.MaxOffset < 0 || c.MaxOffset > time.Hour:
		return fmt.Errorf("clocks %v apart: want 0, which is the default, to an hour", c.MaxOffset)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.MaxKeys = cmp.Or(c.MaxKeys, DefaultMaxKeys)
	c.MaxOffset = cmp.Or(c.MaxOffset, 500*time.Millisecond)
	return c
}
