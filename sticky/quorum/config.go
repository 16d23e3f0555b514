package quorum

import (
	"fmt"
	"time"

	"github.com/georld/rld/sticky/route"
)

// Config says who a replica is.
type Config struct {
	// Region and Name are this daemon's; the name is the same over restarts.
	Region, Name string
	// Genesis is the first layout, of which the other regions' replicas may be
	// left out. It must be the same wherever it is used for a first start; what
	// is stored goes before it.
	Genesis route.Layout
	// MaxLedgers bounds the ledgers that are held, default 1,000,000, at about
	// 200 bytes each in memory. Raises of more are refused.
	MaxLedgers int
	// MaxOffset is how far the clocks of two daemons may be apart, default
	// 500 ms. Only what is forgotten when depends on it, and no count.
	MaxOffset time.Duration
}

// DefaultMaxLedgers is the bound on ledgers where nobody says otherwise.
const DefaultMaxLedgers = 1_000_000

// Start is what a daemon finds when it starts.
type Start struct {
	// Stored is what it stored, nil when there is nothing.
	Stored *Stored
	// First says that there is nothing because the daemon never ran in this
	// region under this name. To say so of one that lost its disk breaks the
	// promise of strict keys.
	First bool
	// Generation is, without Stored and First, the number of the new life: above all
	// before, as Unix milliseconds are.
	Generation uint64
}

// Validate returns what is wrong with the configuration, and what would be right.
func (c *Config) Validate() error {
	if c.Name == "" || len(c.Name) > route.MaxName {
		return fmt.Errorf("daemon name of %d bytes: want 1 to %d", len(c.Name), route.MaxName)
	}
	if c.Genesis.Number != 1 {
		return fmt.Errorf("first layout with number %d: want 1", c.Genesis.Number)
	}
	if err := c.Genesis.Validate(); err != nil {
		return err
	}
	if c.Genesis.Region(c.Region) == nil {
		return fmt.Errorf("region %q is not in the layout: add it there", c.Region)
	}
	if c.MaxLedgers < 0 {
		return fmt.Errorf("room for %d ledgers: want 1 and more", c.MaxLedgers)
	}
	if c.MaxOffset < 0 || c.MaxOffset > time.Hour {
		return fmt.Errorf("clocks %v apart: want 0, which is the default, to an hour", c.MaxOffset)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.MaxLedgers == 0 {
		c.MaxLedgers = DefaultMaxLedgers
	}
	if c.MaxOffset == 0 {
		c.MaxOffset = 500 * time.Millisecond
	}
	return c
}
