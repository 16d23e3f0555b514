package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
)

// Region is a configured region.
type Region struct {
	Name string
	// Weight is its share of every rule's rights at the genesis, relative to
	// those of the others; all 0 means equal.
	Weight uint64
	// Added marks a region that was added after the first start of the others:
	// it is not in the genesis, and holds 0 until ReturnRegion.
	Added bool
}

// Config is the configuration of an agent. Regions, their weights, Daemons and
// DaemonHorizon are the genesis. They must be the same for every first start,
// forever; daemons with a different genesis reject each other's messages.
// Daemons that are added later are not in Daemons and join; regions that are
// added later are marked.
type Config struct {
	// Region and Name are those of this daemon; the name is the same across
	// restarts.
	Region, Name string
	// Regions are all configured regions, 1 to 64: the genesis of regions.
	Regions []Region
	// Daemons are the names of the region's daemons at its first start, at
	// most 256: the genesis of the region's daemons, with equal weights.
	Daemons []string
	// DaemonHorizon is how long after its last message the share of a dead
	// daemon is reclaimed in a region of three or more daemons. A daemon that
	// reaches too few of them holds nothing after this time. 0 or less disables
	// it; DefaultDaemonHorizon suits most. At most a day.
	DaemonHorizon time.Duration
	// Period is the time between two evaluations of the demand, 5 s to 10 min,
	// default 10 s. A longer one adapts more slowly and costs less.
	Period time.Duration
	// Interval is the time between two messages without changes to a regional
	// peer, default 250 ms; WANInterval that to another region, default 500
	// ms. 10 ms to 10 s.
	Interval, WANInterval time.Duration
	// Ahead is how far the stored record is ahead of the clock, 1 s to a
	// minute, default 5 s: a restarted daemon cannot use these windows.
	Ahead time.Duration
}

// DefaultDaemonHorizon is the default horizon of daemons.
const DefaultDaemonHorizon = 30 * time.Second

// maxDaemons bounds the daemons of the genesis.
const maxDaemons = epoch.MaxMembers

// maxName bounds the name of a region or a daemon, in bytes.
const maxName = 255

// WithDefaults returns c with defaults for fields of 0, except DaemonHorizon.
func (c Config) WithDefaults() Config {
	c.Period = cmp.Or(c.Period, 10*time.Second)
	c.Interval = cmp.Or(c.Interval, 250*time.Millisecond)
	c.WANInterval = cmp.Or(c.WANInterval, 500*time.Millisecond)
	c.Ahead = cmp.Or(c.Ahead, 5*time.Second)
	return c
}

// resend returns how long after an item it is sent again to a peer that still
// lacks it, in the own region or in another one.
func (c *Config) resend(local bool) time.Duration {
	if local {
		return 4 * c.Interval
	}
	return 3 * c.WANInterval
}

// Validate returns an error for the first invalid field, with valid values.
// Fields of 0 have their defaults.
func (c Config) Validate() error {
	c = c.WithDefaults()
	if c.Name == "" || len(c.Name) > maxName {
		return fmt.Errorf("daemon name of %d bytes: want 1 to %d", len(c.Name), maxName)
	}
	if n := len(c.Regions); n == 0 || n > overage.MaxRegions {
		return fmt.Errorf("%d regions: want 1 to %d", n, overage.MaxRegions)
	}
	if len(c.Daemons) > maxDaemons {
		return fmt.Errorf("%d daemons of the first start: want at most %d", len(c.Daemons), maxDaemons)
	}
	if c.DaemonHorizon > epoch.MaxHorizon*time.Millisecond {
		return fmt.Errorf("daemon horizon of %v: want 0, which is off, to a day", c.DaemonHorizon)
	}
	for _, d := range []struct {
		what           string
		is, least, top time.Duration
	}{
		{"period", c.Period, 5 * time.Second, 10 * time.Minute},
		{"interval", c.Interval, 10 * time.Millisecond, 10 * time.Second},
		{"interval across regions", c.WANInterval, 10 * time.Millisecond, 10 * time.Second},
		{"record ahead of the clock", c.Ahead, time.Second, time.Minute},
	} {
		if d.is < d.least || d.is > d.top {
			return fmt.Errorf("%s of %v: want %v to %v", d.what, d.is, d.least, d.top)
		}
	}
	return c.validateNames()
}

func (c Config) validateNames() error {
	ids := map[uint64]string{}
	known, first := false, false
	for _, r := range c.Regions {
		first = first || !r.Added
		if r.Name == "" || len(r.Name) > maxName {
			return fmt.Errorf("region name of %d bytes: want 1 to %d", len(r.Name), maxName)
		}
		if r.Weight > 1<<40 {
			return fmt.Errorf("region %q: weight %d: want at most 2^40", r.Name, r.Weight)
		}
		if other, twice := ids[regionID(r.Name)]; twice {
			return fmt.Errorf("regions %q and %q: want each name once", other, r.Name)
		}
		ids[regionID(r.Name)] = r.Name
		known = known || r.Name == c.Region
	}
	if !known {
		return fmt.Errorf("region %q is not among the configured regions: add it there", c.Region)
	}
	if !first {
		return errors.New("all regions are added later: want at least one that was there at the first start")
	}
	clear(ids)
	for _, d := range c.Daemons {
		if d == "" || len(d) > maxName {
			return fmt.Errorf("daemon name of %d bytes: want 1 to %d", len(d), maxName)
		}
		if other, twice := ids[memberID(d, 0)]; twice {
			return fmt.Errorf("daemons %q and %q of the first start: want each name once", other, d)
		}
		ids[memberID(d, 0)] = d
	}
	return nil
}

// genesis returns the first epoch of the regions: their weights in parts per
// million, rounded down. The first by ID also gets the rest.
func (c Config) genesis() (epoch.Epoch, error) {
	var members []epoch.Member
	for _, r := range c.Regions {
		if !r.Added {
			members = append(members, epoch.Member{ID: regionID(r.Name), Amount: r.Weight})
		}
	}
	g, err := epoch.Genesis(0, members)
	if err == nil {
		rescale(&g, epoch.Whole)
	}
	return g, err
}

// regionIndex returns the place of a region among the configured ones, -1 for
// none.
func (c *Config) regionIndex(name string) int {
	return slices.IndexFunc(c.Regions, func(r Region) bool { return r.Name == name })
}

// daemons returns the first epoch of the region's daemons.
func (c Config) daemons() (epoch.Epoch, error) {
	if len(c.Daemons) == 0 {
		return epoch.Epoch{}, errors.New("no daemons of the first start: name those of this region")
	}
	members := make([]epoch.Member, len(c.Daemons))
	for i, name := range c.Daemons {
		members[i] = epoch.Member{ID: memberID(name, 0), Amount: 1}
	}
	return epoch.Genesis(c.horizon(), members)
}

// horizon returns the horizon of the daemons' epochs in milliseconds.
func (c Config) horizon() int64 { return max(c.DaemonHorizon, 0).Milliseconds() }

// Rule is a rule with rights.
type Rule struct {
	// ID identifies its counters on all daemons.
	ID uint64
	// Pins are the weights that the operator set. The other regions share the
	// rest.
	Pins []rules.Weight
	// Window is the window length. Demand is smoothed over several windows, so
	// that weights do not follow bursts within one. 0 means short.
	Window time.Duration
	// Lookback is how long ago a window in use may have started, plus its
	// carry: the sum of window length, carry and grace. It decides how long
	// epochs are kept. 0 means two minutes.
	Lookback time.Duration
}

// MaxRules bounds the rules of an agent.
const MaxRules = epoch.MaxRules
