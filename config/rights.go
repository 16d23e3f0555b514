package config

import (
	"slices"
	"strings"
	"time"
)

// Rights holds the settings of rights, which bound limits with an
// overage_budget and those of consistency partition and strict.
type Rights struct {
	// DaemonHorizon is how long a daemon may use its rights without contact to
	// the region, and so the time after which the others take over the rights
	// of an unreachable one: 5 s to 1 h; 0 for never. It has no effect on
	// durable daemons of a region with fewer than three of them.
	DaemonHorizon time.Duration
	// RegionHorizon is the same for a region; only 0 is supported.
	RegionHorizon time.Duration
	// Period is the time between two adjustments of the regions' shares to
	// demand, 5 s to 10 min.
	Period time.Duration
}

func defaultRights() Rights {
	return Rights{DaemonHorizon: 30 * time.Second, Period: 10 * time.Second}
}

// NoRights returns "" where the daemon can hold rights and own keys, which is
// always so without a region. Otherwise it returns the reason and its remedy.
func (c *Config) NoRights() string {
	switch {
	case c.Witness():
		return "this daemon only votes in the control log (control.voter: only): ask the daemons of other regions"
	case c.Region == "" || c.State.Dir != "" || c.State.Diskless && len(c.Strict.Replicas) > 0:
		return ""
	case c.State.Diskless:
		return "this diskless daemon does not know where the rights of its region are placed: " +
			"give strict.replicas as the durable daemons of the region do"
	}
	return "this daemon of a cluster has no folder for what must outlive a restart: " +
		"give state.dir (--state-dir, RLD_STATE_DIR), or state.diskless where the region has daemons with one"
}

// RegionNames returns the names of all regions of the cluster, including the
// own one, sorted; nil for a daemon without a region.
func (c *Config) RegionNames() []string {
	if c.Region == "" {
		return nil
	}
	out := []string{c.Region}
	for _, r := range c.Regions {
		out = append(out, r.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (v *validator) rights(c *Config) {
	r := &c.Rights
	if r.DaemonHorizon != 0 && (r.DaemonHorizon < 5*time.Second || r.DaemonHorizon > time.Hour) {
		v.fault("rights.daemon_horizon", "%s is out of range: 5s to 1h, or off", shortDuration(r.DaemonHorizon))
	}
	if r.DaemonHorizon == 0 && c.State.Diskless {
		v.faultFor("rights.daemon_horizon", "state.diskless", "off would keep the share of each diskless daemon that dies for ever: "+
			"want 5s to 1h, the same at all daemons of the region")
	}
	if r.RegionHorizon != 0 {
		v.fault("rights.region_horizon", "%s: only off is supported: an unreachable region keeps its share, "+
			"and rld region remove NAME --stopped gives the share of a dead one to the others",
			shortDuration(r.RegionHorizon))
	}
}

// horizon is a duration that may be off, which is 0.
func horizon(p *time.Duration) value {
	parse := func(s string) (time.Duration, error) {
		if strings.EqualFold(s, "off") {
			return 0, nil
		}
		return time.ParseDuration(s)
	}
	show := func(d time.Duration) string {
		if d == 0 {
			return "off"
		}
		return shortDuration(d)
	}
	return parsed(p, "duration", "neither off nor a duration with a unit such as 30s or 5m", parse, show)
}
