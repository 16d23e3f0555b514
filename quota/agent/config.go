package agent

import (
	"cmp"
	"fmt"
	"time"

	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
)

// Region is a region of the cluster.
type Region struct {
	Name string
	// ID is the region as a participant of the epochs of regions. A region that
	// was removed and added again has another one.
	ID uint64
	// Weight is its share of every rule's rights at the founding of the
	// cluster, relative to those of the others; all 0 means equal. It is used
	// only in Config.Genesis.
	Weight uint64
}

// Config is the configuration of an agent. Cluster, Genesis, Generation,
// Founders and Horizon are the genesis of both tables. They come from the
// record of the control log, which never changes them; daemons with a different
// genesis reject each other's messages.
type Config struct {
	// Region and Name are the names of the daemon and of its region, for people
	// and as addresses.
	Region, Name string
	// Self is this daemon as a participant of its region's epochs, not 0. A
	// daemon that lost its record has another one.
	Self uint64
	// Diskless daemons lose their record when they stop, and start again with
	// another Self. Those with a disk extend their horizons.
	Diskless bool
	// Generation is the region of this daemon as a participant of the epochs of
	// regions.
	Generation uint64
	// Cluster identifies the cluster.
	Cluster uint64
	// Genesis are the regions at the founding of the cluster, 1 to 64.
	Genesis []Region
	// Founders are the daemons of the region's generation when it began, 1 to
	// 256, as participants: the genesis of the region's daemons, with equal
	// weights. All others join.
	Founders []uint64
	// Horizon is the horizon of the genesis of the region's daemons, in
	// milliseconds: 0 to a day, 0 is none.
	Horizon int64
	// From is the first window in which the region's generation may use limits
	// of the region alone, in Unix milliseconds: those of a former generation
	// may have used the windows before. 0 is without bound.
	From int64
	// DaemonHorizon is how long after its last message the share of a dead
	// daemon is reclaimed in a region of three or more daemons. A daemon that
	// reaches too few of them holds nothing after this time. 0 or less disables
	// it; DefaultDaemonHorizon suits most. At most a day. It is the horizon of
	// the epochs that this agent proposes.
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

	rest time.Duration // see restOf
}

// DefaultDaemonHorizon is the default horizon of daemons.
const DefaultDaemonHorizon = 30 * time.Second

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
	if c.Self == 0 || c.Generation == 0 {
		return fmt.Errorf("participants %d of region %d: want both above 0", c.Self, c.Generation)
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
	if err := validateRegions(c.Genesis); err != nil {
		return fmt.Errorf("genesis: %w", err)
	}
	_, err := c.daemons()
	return err
}

// validateRegions returns an error for a list that is not 1 to 64 regions, each
// name and participant once.
func validateRegions(all []Region) error {
	if n := len(all); n == 0 || n > overage.MaxRegions {
		return fmt.Errorf("%d regions: want 1 to %d", n, overage.MaxRegions)
	}
	for i, r := range all {
		if r.Name == "" || len(r.Name) > maxName {
			return fmt.Errorf("region name of %d bytes: want 1 to %d", len(r.Name), maxName)
		}
		if r.ID == 0 || r.Weight > 1<<40 {
			return fmt.Errorf("region %q: participant %d, weight %d: want one above 0, and at most 2^40", r.Name, r.ID, r.Weight)
		}
		for _, other := range all[:i] {
			if other.Name == r.Name || other.ID == r.ID {
				return fmt.Errorf("regions %q and %q: want each name and participant once", other.Name, r.Name)
			}
		}
	}
	return nil
}

// regions returns the first epoch of the regions: their weights in parts per
// million.
func (c *Config) regions() (epoch.Epoch, error) {
	members := make([]epoch.Member, len(c.Genesis))
	for i, r := range c.Genesis {
		members[i] = epoch.Member{ID: r.ID, Amount: r.Weight}
	}
	return epoch.Shared(members)
}

// daemons returns the first epoch of the region's daemons.
func (c *Config) daemons() (epoch.Epoch, error) {
	members := make([]epoch.Member, len(c.Founders))
	for i, id := range c.Founders {
		members[i] = epoch.Member{ID: id, Amount: 1}
	}
	e, err := epoch.Genesis(c.Horizon, members)
	if err != nil {
		return epoch.Epoch{}, fmt.Errorf("founders of the region: %w", err)
	}
	return e, nil
}

// horizon returns the horizon of new epochs of daemons in milliseconds.
func (c *Config) horizon() int64 { return max(c.DaemonHorizon, 0).Milliseconds() }

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
