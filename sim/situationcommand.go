package sim

import (
	"slices"

	"github.com/georld/rld/control"
	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/sticky/route"
)

// asked notes that a daemon was asked to begin the cluster.
func (s *situations) asked(w *World, d *Daemon) {
	if anyRecord(w) || slices.Contains(s.askers, d.Index) {
		return
	}
	if s.askers = append(s.askers, d.Index); len(s.askers) == 2 {
		s.took(w, twoInits)
	}
}

// recovers counts a recovery that begins at a daemon that is behind all others.
func (s *situations) recovers(w *World, d *Daemon) {
	is := d.control.Record().Version
	ahead := false
	for _, o := range w.daemons {
		if o.control == nil || o.control.Record() == nil || o == d {
			continue
		}
		switch c := o.control.Record().Version.Compare(is); {
		case c < 0:
			return
		case c > 0:
			ahead = true
		}
	}
	if ahead {
		s.took(w, recoveredBehind)
	}
}

// ordered notes a command that an operator gave to a daemon.
func (s *situations) ordered(w *World, d *Daemon, id control.Number, c control.Change) {
	if slices.ContainsFunc(s.open, func(o order) bool { return o.id == id && o.daemon == d.Index }) || len(s.open) >= maxOpen {
		return
	}
	if slices.ContainsFunc(s.open, func(o order) bool { return o.id != id && o.daemon != d.Index }) {
		s.took(w, twoOperators)
	}
	living := c.Region != nil && c.Region.Op == control.RemoveRegion && c.Region.Stopped &&
		slices.ContainsFunc(w.daemons, func(o *Daemon) bool { return o.Region == c.Region.Name && o.Up })
	s.open = append(s.open, order{id, d.Index, c, living})
}

// maxOpen bounds the commands without a result that are remembered.
const maxOpen = 64

// concluded counts commands by their results.
func (s *situations) concluded(w *World, d *Daemon, results []control.Result) {
	for _, r := range results {
		i := slices.IndexFunc(s.open, func(o order) bool { return o.id == r.ID && o.daemon == d.Index })
		if i < 0 {
			continue
		}
		o := s.open[i]
		s.open = slices.Delete(s.open, i, i+1)
		switch {
		case r.Err == nil:
			if x, ok := commandOf(&o.change); ok {
				s.took(w, x)
			}
		case o.living:
			s.took(w, removalRefused)
		}
	}
}

// commandOf returns the situation that the result of a change proves, false for
// none: regions that are added or removed are seen in records.
func commandOf(c *control.Change) (situation, bool) {
	switch l := c.Limits; {
	case c.Format != nil:
		return formatHeld, c.Format.Op == control.HoldFormat
	case c.Region != nil:
		return map[control.RegionOp]situation{control.WeighRegion: regionWeighed, control.DrainRegion: regionDrained}[c.Region.Op],
			c.Region.Op == control.WeighRegion || c.Region.Op == control.DrainRegion
	case c.Revoke != nil && c.Revoke.Undo:
		return daemonUnrevoked, true
	case c.Revoke != nil:
		return daemonRevoked, true
	case c.Layouts != nil:
		return strictRecovered, true
	case l == nil:
		return 0, false
	case l.Rules != nil && l.Rules.Rollback != nil:
		return rolledBack, true
	case l.Rules != nil && l.Rules.Adopt:
		return limitsAdopted, true
	case l.Rules != nil:
		return limitsApplied, true
	case l.Override != nil && l.Override.Unset && l.Override.Key != "":
		return keyUnblocked, true
	case l.Override != nil && l.Override.Unset:
		return overrideUnset, true
	case l.Override != nil && l.Override.Reset:
		return keyReset, true
	case l.Override != nil && l.Override.Key != "":
		return keyBlocked, true
	case l.Override != nil:
		return overrideSet, true
	}
	return 0, false
}

// follows counts the changes from a daemon's record to its next one, and the
// versions in between that it skipped.
func (s *situations) follows(w *World, d *Daemon) {
	was, is := s.pods[d.Index].record, d.control.Record()
	if is == nil || was == is {
		return
	}
	s.pods[d.Index].record = is
	if is.Version.Recovery.Number > 1 {
		s.took(w, recoveredTwice)
	}
	if was == nil {
		return
	}
	for _, g := range is.Regions {
		if was.Region(g.Name) == nil {
			s.took(w, regionAdded)
		}
	}
	for _, g := range was.Regions {
		if is.Region(g.Name) == nil {
			s.took(w, regionRemoved)
		}
	}
	for i := range is.Dead {
		if o := &is.Dead[i]; o.Stopped && was.DeadID(o.ID) == nil {
			s.took(w, daemonRemoved)
		}
	}
	if overruled(was.Layouts.Announced, &is.Layouts) {
		s.took(w, layoutOverruled)
	}
	if len(was.Epochs) == 0 || len(is.Epochs) == 0 {
		return
	}
	before, after := &was.Epochs[len(was.Epochs)-1], &is.Epochs[len(is.Epochs)-1]
	if before.ID != after.ID && after.Pred != before.ID {
		s.took(w, versionSkipped)
	}
}

// overruled reports whether a layout that was announced never becomes active.
func overruled(was *route.Layout, is *control.Layouts) bool {
	if was == nil || is.Announced != nil && is.Announced.Number == was.Number && is.Announced.Log == was.Log {
		return false
	}
	a := is.Active
	return a == nil || a.Number < was.Number || a.Number == was.Number && a.Log != was.Log
}

// result returns how often each situation took effect, nil for a run without a
// control log.
func (s *situations) result(cfg *Config) (out []situationResult) {
	if cfg.Control == nil {
		return nil
	}
	for _, x := range enum.All[situation](situationKinds) {
		out = append(out, situationResult{x.String(), s.counts[x]})
	}
	return out
}

// situationResult is how often a situation took effect.
type situationResult struct {
	Name  string `json:"name"`
	Times uint64 `json:"times"`
}
