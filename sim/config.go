package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
)

// Bounds on a run. They keep a scenario from costing more than a machine has.
const (
	MaxRegions   = load.MaxRegions
	MaxDaemons   = 1_024 // of all regions together
	MaxWorkloads = 64
	MaxFaults    = 10_000
	MaxDuration  = load.MaxDuration
)

// Config describes a run: its cluster, load, faults and claims. Default returns
// one to start from. Validate returns an error for the first field out of its
// range. A run does not change its Config.
type Config struct {
	// Name names the run in results. Title describes it in one line,
	// Description in several.
	Name, Title, Description string
	// Seed draws everything that is random.
	Seed uint64
	// Duration is how long load and faults last, above 0.
	Duration time.Duration
	// Settle is the longest that the liveness phase after it may take: faults
	// are healed, load has stopped, and replicas must come to agree. 0 for no
	// such phase.
	Settle time.Duration
	// Liveness is the longest that the core may take after that until it serves
	// its clients: calls are answered, new keys are admitted, epochs are
	// settled. 0 does not look.
	Liveness time.Duration
	// Regions holds 1 to MaxRegions regions.
	Regions []Region
	// Shards is the number of nodes a daemon splits its keys over, a power of
	// two.
	Shards int
	// Node configures every node. MaxKeys and Gossip.MaxCells are a daemon's
	// and are split over its shards; Shard, Shards and Region are filled in.
	Node node.Config
	// Settings are those of single daemons and regions that differ from these,
	// the later ones before the former.
	Settings []Settings
	// Policy is what holds the limits that have rights; the zero value is the
	// rules as they are written.
	Policy Policy
	// Rights is how daemons share out rights, where rules have them.
	Rights Rights
	// Strict is how keys are counted at owners, where rules have them so.
	Strict Strict
	// Control is the control log of all daemons, nil for none. Nothing else in
	// the cluster depends on it yet. Its founders are by default the first
	// daemons of the first five regions; the fields of a daemon are filled in.
	Control *control.Config
	// Begin is when the operator asks to begin the cluster, 0 for before the
	// load.
	Begin time.Duration
	// Diskless are the regions and daemons without a state folder.
	Diskless []string
	// Grid, when it is not nil, plays many runs in place of one: see package
	// grid.
	Grid interface {
		Validate() error
		Run(cfg *Config, o Options) (*Result, error)
	}
	// Members is how fast news of daemons travel.
	Members Members
	Network Network
	// Rules is the rule set in force at the start, Limits its text for reports,
	// "" where it is not known.
	Rules     *rules.Set
	Limits    string
	Workloads []load.Workload
	// Trace is played beside the workloads when it is not nil.
	Trace *load.Trace
	// Epoch is the wall time of virtual time 0 in Unix nanoseconds, 0 for
	// 2026-01-01, a boundary of every window up to a day.
	Epoch  int64
	Faults []Fault
	// Outside names regions that do not take part in the liveness phase.
	Outside []Outside
	Expect  Expect
}

// Region is a region and how many daemons it has.
type Region struct {
	Name    string
	Daemons int
}

// Daemon returns the configured name of one of its daemons.
func (r *Region) Daemon(index int) string { return daemonName(r.Name, index) }

// Settings are settings of the daemons of a place. A field of 0 is as for all
// daemons.
type Settings struct {
	Place string // a region or a daemon
	// Shards is the number of nodes of a daemon. Daemons with different numbers
	// refuse each other.
	Shards int
	// MaxKeys and MaxCells bound the keys and cells of a daemon, and Interval
	// and WANInterval are those of Node.Gossip.
	MaxKeys, MaxCells     int
	Interval, WANInterval time.Duration
	// Newer daemons run a later version, whose messages have unknown fields.
	Newer bool
}

// settings returns the configuration of a daemon's nodes together, their number
// and whether the daemon runs a later version.
func (c *Config) settings(region, daemon string) (n node.Config, newer bool) {
	n, n.Shards = c.Node, c.Shards
	n.Gossip = n.Gossip.WithDefaults()
	for _, s := range c.Settings {
		if s.Place == region || s.Place == daemon {
			n.Shards, n.MaxKeys = cmp.Or(s.Shards, n.Shards), cmp.Or(s.MaxKeys, n.MaxKeys)
			n.Gossip.MaxCells = cmp.Or(s.MaxCells, n.Gossip.MaxCells)
			n.Gossip.Interval = cmp.Or(s.Interval, n.Gossip.Interval)
			n.Gossip.WANInterval = cmp.Or(s.WANInterval, n.Gossip.WANInterval)
			newer = newer || s.Newer
		}
	}
	n.Gossip.MinGap = min(n.Gossip.MinGap, n.Gossip.Interval, n.Gossip.WANInterval)
	return n, newer
}

func (c *Config) validateSettings() error {
	for i, s := range c.Settings {
		switch {
		case !slices.Contains(c.Places(), s.Place):
			return fmt.Errorf("sim: settings %d: no region or daemon %q", i, s.Place)
		case s.Shards < 0 || s.Shards > node.MaxShards || s.Shards&(s.Shards-1) != 0:
			return fmt.Errorf("sim: settings of %s: %d shards: want a power of two from 1 to %d", s.Place, s.Shards, node.MaxShards)
		case s.MaxKeys < 0 || s.MaxCells < 0 || s.Interval < 0 || s.WANInterval < 0:
			return fmt.Errorf("sim: settings of %s: want no negative values", s.Place)
		}
		n, _ := c.settings("", s.Place)
		if err := n.Gossip.Validate(); err != nil {
			return fmt.Errorf("sim: settings of %s: %w", s.Place, err)
		}
	}
	return nil
}

// Members is how long a daemon needs to learn of a change of the live daemons.
// Each daemon learns at its own time, up to Spread later.
type Members struct {
	Join   time.Duration // that a daemon came up or can be reached again
	Leave  time.Duration // that one is gone, or cut off within its region
	Spread time.Duration
}

// Network is the links between daemons. The last of Links that fits a pair of
// daemons is in force, else Region or Across.
type Network struct {
	Region Link // between daemons of one region
	Across Link // between daemons of different regions
	Links  []LinkRule
}

// LinkRule gives the links of one direction between two places other
// qualities. A place is a region or a daemon; "" is everywhere.
type LinkRule struct {
	From, To string
	Link     Link
}

// Link is the quality of one direction between two daemons.
type Link struct {
	// Delay is the least time a frame takes; Jitter comes on top: the mean of
	// an exponential distribution, or the width of a uniform one.
	Delay, Jitter time.Duration
	Uniform       bool
	// Loss, Duplicate, Corrupt and Truncate are the shares of frames that are
	// lost, arrive twice, with flipped bits, or cut short.
	Loss, Duplicate, Corrupt, Truncate rules.PPM
	// Reorder is the share of frames that need not arrive behind the ones
	// sent before. All others keep their order, as in a stream.
	Reorder rules.PPM
	// Bandwidth is in bytes a second, 0 for no bound. Frames queue for at
	// most maxQueue; what would wait longer is lost.
	Bandwidth int64
}

// maxQueue is how long a frame may wait for its turn on a link.
const maxQueue = 5 * time.Second

// Default returns three regions of three daemons without rules, load or faults,
// for a minute. Its links are of 1 ms in a region and 40 ms across, each way,
// with a tenth of it as jitter.
func Default() Config {
	n := node.Default()
	n.MaxKeys, n.KeyReserve = 100_000, 50*rules.Percent // the reserve as the setting
	return Config{
		Name: "default", Seed: 1, Duration: time.Minute, Settle: 30 * time.Second,
		Regions: []Region{{"eu", 3}, {"us", 3}, {"ap", 3}},
		Shards:  1,
		Node:    n,
		Rights:  Rights{DaemonHorizon: agent.DefaultDaemonHorizon},
		Strict:  defaultStrict,
		Members: Members{Join: 200 * time.Millisecond, Leave: 3 * time.Second, Spread: 200 * time.Millisecond},
		Network: Network{
			Region: Link{Delay: time.Millisecond, Jitter: 100 * time.Microsecond},
			Across: Link{Delay: 40 * time.Millisecond, Jitter: 4 * time.Millisecond},
		},
	}
}

// Daemons returns how many daemons there are in all regions.
func (c *Config) Daemons() int {
	n := 0
	for _, r := range c.Regions {
		n += r.Daemons
	}
	return n
}

// Validate returns an error for the first field out of its range.
func (c *Config) Validate() error {
	switch n := len(c.Regions); {
	case c.Duration <= 0 || c.Duration > MaxDuration:
		return fmt.Errorf("sim: duration %v: want more than 0 and at most %v", c.Duration, MaxDuration)
	case c.Settle < 0 || c.Settle > MaxDuration:
		return fmt.Errorf("sim: settle %v: want 0 to %v", c.Settle, MaxDuration)
	case c.Liveness < 0 || c.Liveness > MaxDuration:
		return fmt.Errorf("sim: liveness %v: want 0 to %v", c.Liveness, MaxDuration)
	case n < 1 || n > MaxRegions:
		return fmt.Errorf("sim: %d regions: want 1 to %d", n, MaxRegions)
	}
	for i, r := range c.Regions {
		if r.Name == "" || r.Daemons < 1 {
			return fmt.Errorf("sim: region %d %q of %d daemons: want a name and at least one", i, r.Name, r.Daemons)
		}
		if slices.ContainsFunc(c.Regions[:i], func(o Region) bool { return o.Name == r.Name }) {
			return fmt.Errorf("sim: two regions %q", r.Name)
		}
	}
	switch n := c.Daemons(); {
	case n > MaxDaemons:
		return fmt.Errorf("sim: %d daemons: want at most %d", n, MaxDaemons)
	case c.Shards < 1 || c.Shards > node.MaxShards || c.Shards&(c.Shards-1) != 0:
		return fmt.Errorf("sim: %d shards: want a power of two from 1 to %d", c.Shards, node.MaxShards)
	case c.Rules == nil:
		return fmt.Errorf("sim: no rules")
	case int(c.Policy) >= policyKinds:
		return fmt.Errorf("sim: unknown policy %d", c.Policy)
	}
	parts := []func() error{c.validateRights, c.validateSettings, c.Strict.validate, c.validateControl, c.Network.validate, c.validateWorkloads, c.validateFaults}
	if c.Grid != nil {
		parts = slices.Insert(parts, 0, c.Grid.Validate)
	}
	for _, validate := range parts {
		if err := validate(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) validateWorkloads() error {
	if len(c.Workloads) > MaxWorkloads {
		return fmt.Errorf("sim: %d workloads: want at most %d", len(c.Workloads), MaxWorkloads)
	}
	for i := range c.Workloads {
		if err := c.Workloads[i].Validate(); err != nil {
			return fmt.Errorf("sim: workload %d: %w", i, err)
		}
	}
	return nil
}

func (n *Network) validate() error {
	err := cmp.Or(n.Region.validate(), n.Across.validate())
	for i := range n.Links {
		err = cmp.Or(err, n.Links[i].Link.validate())
	}
	return err
}

func (l *Link) validate() error {
	if l.Delay < 0 || l.Jitter < 0 || l.Delay > time.Hour || l.Jitter > time.Hour {
		return fmt.Errorf("sim: link delay %v, jitter %v: want 0 to 1h", l.Delay, l.Jitter)
	}
	for _, p := range []rules.PPM{l.Loss, l.Duplicate, l.Corrupt, l.Truncate, l.Reorder} {
		if p > 100*rules.Percent {
			return fmt.Errorf("sim: link share of %d parts per million: want at most 1,000,000", p)
		}
	}
	if l.Bandwidth < 0 {
		return fmt.Errorf("sim: link bandwidth %d: want 0 or more bytes a second", l.Bandwidth)
	}
	return nil
}

func (c *Config) validateFaults() error {
	if len(c.Faults) > MaxFaults {
		return fmt.Errorf("sim: %d faults: want at most %d", len(c.Faults), MaxFaults)
	}
	for i := range c.Faults {
		f := &c.Faults[i]
		if f.At < 0 || f.For < 0 || f.At > MaxDuration || f.For > MaxDuration {
			return fmt.Errorf("sim: fault %d at %v for %v: want 0 to %v", i, f.At, f.For, MaxDuration)
		}
		for _, name := range slices.Concat(f.From, f.To, f.When.Where) {
			if !slices.Contains(c.Places(), name) {
				return fmt.Errorf("sim: fault %d: no region or daemon %q", i, name)
			}
		}
		if err := f.When.validate(); err != nil {
			return fmt.Errorf("sim: fault %d: %w", i, err)
		}
		if f.Command != "" && !slices.Contains(commandWords, f.Command) {
			return fmt.Errorf("sim: fault %d: no command %q", i, f.Command)
		}
		if (f.Kind == NewRules || f.Kind == MixedLimits) && f.Rules == nil {
			return fmt.Errorf("sim: fault %d: a change to no rules", i)
		}
		if err := f.Link.validate(); err != nil {
			return fmt.Errorf("sim: fault %d: %w", i, err)
		}
	}
	return nil
}

// Places lists the names of all regions and daemons.
func (c *Config) Places() []string {
	var names []string
	for _, r := range c.Regions {
		names = append(names, r.Name)
	}
	for _, r := range c.Regions {
		for i := range r.Daemons {
			names = append(names, daemonName(r.Name, i))
		}
	}
	return names
}

// lag is how old a view across regions is at most when nothing goes wrong.
func (c *Config) Lag() time.Duration {
	g := c.Node.Gossip.WithDefaults()
	for _, s := range c.Settings {
		g.Interval, g.WANInterval = max(g.Interval, s.Interval), max(g.WANInterval, s.WANInterval)
	}
	return 2*g.Interval + g.WANInterval + g.Quiet + 2*c.Network.Region.Delay + c.Network.Across.Delay
}

// maxOffset returns that of the daemons' clocks.
func (c *Config) maxOffset() time.Duration {
	return cmp.Or(c.Node.Clock.MaxOffset, hlc.DefaultMaxOffset)
}
