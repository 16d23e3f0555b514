package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Rights is what a daemon of a cluster needs to hold rights, by which limits
// with an overage_budget and those of consistency partition and strict are
// bounded.
type Rights struct {
	// Dir is the folder of the file with what the daemon promised to others. It
	// must outlive restarts, and be no other daemon's. "" is for a daemon that
	// holds no rights: rules that need them are refused. It asks for Daemons.
	Dir string
	// FirstStart is the operator's word that no daemon of this name was ever in
	// this cluster. It counts where Dir holds no file; a daemon that has
	// neither holds no rights until all others have told it what it promised.
	// Left true for a daemon that loses its disk, it breaks the bound.
	FirstStart bool
	// Daemons are the names of the daemons that the region began with, at most
	// 256, the same at all of them and for good: who comes later is not added.
	Daemons []string
	// DaemonHorizon is how long a daemon may use its rights without hearing
	// from the region, and so how soon the others take over those of one that
	// died: 5 s to 1 h; 0 for for ever. It has no effect among fewer than three
	// daemons.
	DaemonHorizon time.Duration
	// RegionHorizon is the same for a region; only 0 is offered.
	RegionHorizon time.Duration
	// Period is the time between two looks at whether the regions' shares
	// should follow demand, 5 s to 10 min.
	Period time.Duration
}

func defaultRights() Rights {
	return Rights{DaemonHorizon: 30 * time.Second, Period: 10 * time.Second}
}

// maxDaemons bounds the daemons that a region begins with.
const maxDaemons = 256

// NoRights returns why the daemon can neither hold rights nor be home of a key,
// and what would be right, "" when it can. A daemon without a region needs nothing for them.
func (c *Config) NoRights() string {
	if c.Region == "" || c.Rights.Dir != "" {
		return ""
	}
	return "this daemon of a cluster has no folder for what must outlive a restart: " +
		"give rights.dir (--rights-dir, RLD_RIGHTS_DIR)"
}

// RegionNames returns the names of all regions of the cluster, the own one
// among them, sorted; nil for a daemon without a region.
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

func (v *validator) rights(r *Rights) {
	switch {
	case r.Dir == "" && len(r.Daemons) > 0:
		v.fault("rights.daemons", "does nothing without rights.dir, the folder that rights need")
	case r.Dir != "" && len(r.Daemons) == 0:
		v.faultFor("rights.daemons", "rights.dir", "is missing: name the daemons that the region began with, "+
			"the same at each of them, such as us-0,us-1,us-2")
	}
	if r.Dir == "" && r.FirstStart {
		v.fault("rights.first_start", "does nothing without rights.dir, the folder that rights need")
	}
	v.daemons(r.Daemons)
	if r.DaemonHorizon != 0 && (r.DaemonHorizon < 5*time.Second || r.DaemonHorizon > time.Hour) {
		v.fault("rights.daemon_horizon", "%s is out of range: 5s to 1h, or off", shortDuration(r.DaemonHorizon))
	}
	if r.RegionHorizon != 0 {
		v.fault("rights.region_horizon", "%s: only off is offered: a region that is cut off keeps its share for as long "+
			"as that lasts, and rld region retire NAME gives the share of one that is dead to the others",
			shortDuration(r.RegionHorizon))
	}
	v.between("rights.period", r.Period, 5*time.Second, 10*time.Minute)
}

// daemons checks names that must be the same everywhere.
func (v *validator) daemons(list []string) {
	const field = "rights.daemons"
	if len(list) > maxDaemons {
		v.fault(field, "%d names: at most %d", len(list), maxDaemons)
		return
	}
	for i, name := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		if err := checkName(name); err != nil {
			v.fault(at, "%s", err)
		} else if slices.Contains(list[:i], name) {
			v.fault(at, "%q is there twice", name)
		}
	}
}

// Check reports whether the folder can hold the file. Warnings are for the log.
// Each error is "rights.dir: PROBLEM".
func (r *Rights) Check() (warnings []string, err error) {
	if r.Dir == "" {
		return nil, nil
	}
	info, err := os.Stat(r.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("rights.dir: %s: no such folder: make it, on a disk that outlives restarts", r.Dir)
	case err != nil:
		return nil, fmt.Errorf("rights.dir: %w", pathProblem(r.Dir, err))
	case !info.IsDir():
		return nil, fmt.Errorf("rights.dir: %s: is a %s, not a folder", r.Dir, kindOf(info.Mode()))
	}
	if r.FirstStart {
		warnings = append(warnings, "rights.first_start is for the first start alone: "+
			"take it out once the daemon has run, for with the folder lost it would break the bound")
	}
	return warnings, nil
}

// kindOf is kind that knows files, too.
func kindOf(m os.FileMode) string {
	if m.IsRegular() {
		return "file"
	}
	return kind(m)
}

// horizon is a duration that may be off, which is 0.
func horizon(p *time.Duration) value {
	v := duration(p)
	take, show := v.set, v.get
	v.set = func(s string) error {
		if strings.EqualFold(s, "off") {
			*p = 0
			return nil
		}
		if take(s) != nil {
			return fmt.Errorf("%q is neither off nor a duration with a unit such as 30s or 5m", s)
		}
		return nil
	}
	v.get = func() string {
		if *p == 0 {
			return "off"
		}
		return show()
	}
	return v
}
