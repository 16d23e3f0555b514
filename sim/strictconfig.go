package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/route"
)

// Strict is how keys are counted at owners.
type Strict struct {
	// Replicas is how many daemons of each region hold what its owners may have
	// consumed, odd, or both of a region of two: the first ones. A region with
	// fewer daemons has as many as there can be.
	Replicas int
	// Headroom is how many hits owners have held ahead of need.
	Headroom uint64
	// Prefetch is how many rights to a key daemons keep that are asked for it
	// now and then, 0 for none.
	Prefetch uint64
	// Forward is how long a call waits for an owner in its region, and Margin
	// how much longer than a round trip for one elsewhere.
	Forward, Margin time.Duration
	// Sync is the longest that a disk takes to sync a journal.
	Sync time.Duration
	// Breaker is when a daemon stops asking an owner that does not answer. A
	// field of 0 is its default.
	Breaker breaker.Config
	// Waiters bounds the calls of a daemon that wait at one time, Queue the
	// requests for one key and the items to one daemon, and VoterKeys the keys
	// of a voter. 0 is the default.
	Waiters, Queue, VoterKeys int
}

// defaultStrict is the Strict of Default.
var defaultStrict = Strict{
	Replicas: 3, Headroom: 20, Prefetch: 16,
	Forward: 50 * time.Millisecond, Margin: 100 * time.Millisecond, Sync: maxSync,
}

func (s *Strict) validate() error {
	switch {
	case s.Replicas < 1 || s.Replicas > route.MaxReplicas:
		return fmt.Errorf("sim: %d replicas of a region: want 1 to %d", s.Replicas, route.MaxReplicas)
	case s.Headroom < 1 || s.Headroom > 1_000_000:
		return fmt.Errorf("sim: headroom of %d hits: want 1 to 1,000,000", s.Headroom)
	case s.Prefetch > 1_000_000:
		return fmt.Errorf("sim: prefetch of %d rights: want at most 1,000,000", s.Prefetch)
	case s.Waiters < 0 || s.Queue < 0 || s.VoterKeys < 0:
		return fmt.Errorf("sim: bounds of %d waiters, %d in a queue and %d keys: want 0 or more", s.Waiters, s.Queue, s.VoterKeys)
	case s.Forward < 0 || s.Margin < 0 || s.Sync < 0 || max(s.Forward, s.Margin, s.Sync) > time.Minute:
		return fmt.Errorf("sim: waits of %v and %v, syncs of %v: want 0 to a minute", s.Forward, s.Margin, s.Sync)
	}
	return nil
}

// FirstLayout returns the layout that all daemons start with.
func (c *Config) FirstLayout() route.Layout {
	l := route.Layout{Number: 1}
	for i := range c.Regions {
		r := &c.Regions[i]
		weight := uint64(1)
		if i < len(c.Rights.Weights) {
			weight = max(1, c.Rights.Weights[i]) // as a daemon reads them
		}
		l.Regions = append(l.Regions, route.Region{Name: r.Name, Weight: uint32(weight), Replicas: c.firstReplicas(r)})
	}
	slices.SortFunc(l.Regions, func(a, b route.Region) int { return cmp.Compare(a.Name, b.Name) })
	for _, r := range c.Rules.Rules() {
		if r.Limit != nil && r.Limit.Homed() && r.Limit.Home != "" {
			l.Pins = append(l.Pins, route.Pin{Rule: uint64(r.ID), Region: r.Limit.Home})
		}
	}
	slices.SortFunc(l.Pins, func(a, b route.Pin) int { return cmp.Compare(a.Rule, b.Rule) })
	return l
}

// firstReplicas returns the daemons of a region that hold watermarks at first.
func (c *Config) firstReplicas(r *Region) []string {
	var names []string
	for i := range votersOf(min(c.Strict.Replicas, r.Daemons)) {
		names = append(names, r.Daemon(i))
	}
	slices.Sort(names)
	return names
}

// votersOf returns how many of n daemons can vote: an odd number, or two.
func votersOf(n int) int {
	if n > 2 && n%2 == 0 {
		return n - 1
	}
	return n
}

// ParseLimits compiles limits for the cluster. If some of them place their
// rights at owners or regions, the rights of all are placed by the size of the
// cluster. Else every daemon holds a part of all of them.
func (c *Config) ParseLimits(file limits.File) (*rules.Set, yamlpos.Diagnostics) {
	files, o := []limits.File{file}, limits.Options{}
	set, diags := limits.Parse(files, o)
	placed := func(r *rules.Rule) bool {
		return r.Limit != nil && (r.Limit.Placement == rules.PerRegion || r.Limit.Placement == rules.Owner)
	}
	if set == nil || !slices.ContainsFunc(set.Rules(), placed) {
		return set, diags
	}
	for i := range c.Regions {
		o.Regions = append(o.Regions, c.Regions[i].Name)
		o.DaemonsOfRegion = max(o.DaemonsOfRegion, c.Regions[i].Daemons)
	}
	o.Daemons = c.Daemons()
	return limits.Parse(files, o)
}
