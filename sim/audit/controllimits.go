package audit

import (
	"fmt"
	"math"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// controlLimits checks the limits that a daemon uses against its record, when
// this changes: a rule is one of a set in force, and its requests are at most
// those of such a set, or of an override in force. Pending limits only lower.
type controlLimits struct {
	finding
	sets map[string]*rules.Set // by hash and sizes
	ever map[rules.ID]uint32   // the most requests that were in force anywhere
}

// read returns the rules of a step.
func (a *controlLimits) read(r *control.Record, s *control.Step) *rules.Set {
	name := fmt.Sprint(s.Set, s.Sizes)
	if is := a.sets[name]; is != nil {
		return is
	}
	files, err := r.Limits.Set(s.Set).Files()
	if !a.ok(err == nil) {
		a.fail("version %v has rules that cannot be read: %v", s.Version, err)
		return nil
	}
	is, err := replica.Language("", limits.Options{MergeDomains: true}).Parse(files, s.Sizes)
	if !a.ok(err == nil) {
		a.fail("version %v has rules with a fault: %v", s.Version, err)
		return nil
	}
	a.sets[name] = is
	return is
}

// changed checks a daemon whose record changed.
func (a *controlLimits) changed(d *sim.Daemon, r *control.Record) {
	l := &r.Limits
	if len(l.Steps) == 0 {
		return
	}
	most := make(map[rules.ID]uint32)
	for i := range l.Steps {
		s := &l.Steps[i]
		set := a.read(r, s)
		if set == nil || s.From == 0 {
			continue
		}
		for _, rule := range set.Rules() {
			if rule.Limit != nil {
				most[rule.ID] = max(most[rule.ID], rule.Limit.Requests)
			}
		}
	}
	for i := range l.Overrides {
		o := &l.Overrides[i]
		if is, known := most[rules.ID(o.RuleID)]; known && o.Start != 0 && o.Requests != nil {
			most[rules.ID(o.RuleID)] = max(is, *o.Requests)
		}
	}
	for id, n := range most {
		a.ever[id] = max(a.ever[id], n)
	}
	if l.Recovered != nil { // the daemon may keep to limits that it dropped
		most = a.ever
	}
	now := d.Instant(a.world.Now()).Wall / int64(time.Millisecond)
	e, err := d.ControlLog().Limits().Effective(now, math.MaxInt64)
	if !a.ok(err == nil) {
		a.fail("%s has no limits at version %v: %v", d.Name, r.Version, err)
		return
	}
	for _, rule := range e.Set.Rules() {
		if rule.Limit == nil {
			continue
		}
		is, known := most[rule.ID]
		a.check(known && rule.Limit.Requests <= is, "%s admits %d requests of %s at version %v: at most %d are in force (%t)",
			d.Name, rule.Limit.Requests, rule.Path, r.Version, is, known)
	}
}
