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
	// Generation is the store number of a daemon without Stored: one that it
	// never had before, such as Unix milliseconds. A voter with another one
	// than its layout has lost its disk.
	Generation uint64
	// Failed is the error of a disk that cannot be used now. The acceptor knows
	// the layout of Stored, and does not vote.
	Failed error
}

// Validate returns an error that names the first field that is not valid, and
// its valid values.
func (c *Config) Validate() error {
	switch {
	case c.Name == "" || len(c.Name) > route.MaxName:
		return fmt.Errorf("daemon name of %d bytes: want 1 to %d", len(c.Name), route.MaxName)
	case c.Region == "" || len(c.Region) > route.MaxName:
		return fmt.Errorf("region name of %d bytes: want 1 to %d", len(c.Region), route.MaxName)
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
