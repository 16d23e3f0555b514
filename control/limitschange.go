package control

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/rules"
)

// LimitsChange is a change of the limits.
type LimitsChange struct {
	Rules    *RulesChange    `json:"rules,omitempty"`
	Override *OverrideChange `json:"override,omitempty"`
	// InForce is a change of the leader itself. Emergency is one of a daemon
	// that has an emergency override.
	InForce   *InForce   `json:"in_force,omitempty"`
	Emergency *Emergency `json:"emergency,omitempty"`
}

// Language is the limits language: functions of a package above this one.
type Language struct {
	// Parse compiles rules of a cluster with regions of these sizes. An error
	// names the file, the line and the column of the first fault.
	Parse func([]RuleFile, []RegionSize) (*rules.Set, error)
	// Check returns an error for a limit that no file may contain. Overrides
	// make such limits.
	Check func(*rules.Limit, []RegionSize) error
}

// changes returns how many fields are set.
func (c *LimitsChange) changes() int {
	n := 0
	if c == nil {
		return 0
	}
	for _, set := range []bool{c.Rules != nil, c.Override != nil, c.InForce != nil, c.Emergency != nil} {
		if set {
			n++
		}
	}
	return n
}

// describe returns the text of a change.
func (c *LimitsChange) describe() string {
	switch {
	case c.Rules != nil:
		text := "rules applied"
		switch {
		case c.Rules.Rollback != nil:
			text = fmt.Sprintf("rules rolled back to version %v", *c.Rules.Rollback)
		case c.Rules.Adopt:
			text = fmt.Sprintf("files adopted in %s", few(c.Rules.Domains))
		}
		return fmt.Sprintf("%s: %d, of which %d are lower and %d higher or moved", text, c.Rules.Rules, c.Rules.Lowers, c.Rules.Raises)
	case c.Override != nil && c.Override.Unset:
		return fmt.Sprintf("%v has no override any more", &c.Override.Target)
	case c.Override != nil && c.Override.Reset:
		return fmt.Sprintf("%v is reset", &c.Override.Target)
	case c.Override != nil:
		return fmt.Sprintf("%v has %v for %s", &c.Override.Target, &c.Override.Setting, length(c.Override.For))
	case c.InForce != nil:
		return fmt.Sprintf("version %v of the limits is in force from %s", c.InForce.Version, when(c.InForce.From))
	case c.Emergency != nil:
		return fmt.Sprintf("%v has %v until %s, an emergency override", &c.Emergency.Target, &c.Emergency.Setting, when(c.Emergency.Until))
	}
	return ""
}

// change makes the change of an entry at a version.
func (l *Limits) change(e *Entry, v Version) error {
	c, at := e.Limits, e.Command.At
	switch {
	case c == nil:
	case c.Rules != nil:
		return l.apply(c.Rules, v, at)
	case c.Override != nil:
		return l.override(c.Override, e.Command.Author, e.Command.Reason, v, at)
	case c.InForce != nil:
		return l.bringIntoForce(c.InForce, at)
	case c.Emergency != nil:
		return l.enter(c.Emergency, v, at)
	}
	return nil
}

// hashed returns the rule sets without their data, for the hash of a record:
// the hash of a set covers it, and its packed form has several versions.
func (l *Limits) hashed() []RuleSet {
	out := slices.Clone(l.Sets)
	for i := range out {
		out[i].Data = nil
	}
	return out
}

// check returns the error of a change that a leader would refuse anyway,
// with all of its text.
func (a *LimitsAgent) check(c *LimitsChange) error {
	n := a.node
	switch {
	case c == nil:
	case c.InForce != nil || c.Emergency != nil:
		return errors.New("an entry that no person submits")
	case c.Rules != nil && c.Rules.Set != nil:
		_, err := n.limits.parse(c.Rules.Set, n.limits.sizes())
		return err
	case c.Override != nil:
		probe := *c.Override
		return n.limits.lookUp(&probe.Target, &probe.Setting, !probe.Unset)
	}
	return nil
}

// lookUpChange sets the fields of a change that the leader sets, in a copy.
func (a *LimitsAgent) lookUpChange(e *Entry) error {
	n := a.node
	if e.Limits == nil {
		return nil
	}
	c := *e.Limits
	e.Limits = &c
	switch {
	case c.Rules != nil:
		next := *c.Rules
		c.Rules = &next
		return n.limits.lookUpRules(&next)
	case c.Override != nil:
		next := *c.Override
		c.Override = &next
		err := n.limits.lookUp(&next.Target, &next.Setting, !next.Unset)
		next.Raises = next.Key == "" && !next.Unset && n.limits.effect(&next.Override).Raises
		if next.Reset && err == nil {
			next.For, err = n.limits.resetFor()
		}
		return err
	case c.InForce != nil:
		next := *c.InForce
		c.InForce = &next
		return n.limits.lookUpInForce(&next)
	}
	return nil
}

// lookUpRules parses the rules of a change, and compares them with the latest
// ones.
func (a *LimitsAgent) lookUpRules(c *RulesChange) error {
	if c.Set != nil && c.Rollback != nil {
		return errors.New("a change of the rules with a set and a version to roll back to: want one of them")
	}
	c.Sizes = a.sizes()
	is, err := a.complete(c)
	if err != nil {
		return err
	}
	differences, err := a.differences(is)
	if err != nil {
		return err
	}
	c.Rules, c.Lowers, c.Raises = len(is.Rules()), 0, 0
	for _, d := range differences {
		if d.Lowers {
			c.Lowers++
		}
		if d.Raises {
			c.Raises++
		}
	}
	return nil
}

// differences compares a set of the log with the rules that are applied now,
// each with those of files in all other domains.
func (a *LimitsAgent) differences(set *rules.Set) ([]rules.Difference, error) {
	l := &a.node.record.Limits
	was, err := a.step(l, len(l.Steps)-1)
	if err != nil {
		return nil, err
	}
	is, err := a.with(set)
	if err != nil {
		return nil, err
	}
	return rules.Differences(was, is), nil
}

// Compare returns the differences that a change of the rules would make.
func (a *LimitsAgent) Compare(c *RulesChange) ([]rules.Difference, error) {
	if a.node.record == nil {
		return nil, ErrNoCluster
	}
	next := *c
	next.Sizes = a.sizes()
	set, err := a.complete(&next)
	if err != nil {
		return nil, err
	}
	return a.differences(set)
}

// lookUpInForce sets the times from which pending limits are in force.
func (a *LimitsAgent) lookUpInForce(c *InForce) error {
	n := a.node
	if waits := n.limits.waits(c.Version); len(waits) > 0 {
		return fmt.Errorf("version %v of the limits waits for %s", c.Version, waits[0])
	}
	l := &n.record.Limits
	c.From = n.wall + n.cfg.InForce.Milliseconds()
	if r := l.Recovered; r != nil && r.From == 0 { // some may have used limits of any shape
		c.From += n.cfg.Horizon.Milliseconds()
	}
	s := l.Latest()
	if s == nil || s.From != 0 {
		return nil
	}
	i := len(l.Steps) - 1
	was, err := a.step(l, i-1)
	if err != nil {
		return err
	}
	is, err := a.step(l, i)
	if err != nil {
		return err
	}
	// Of the first set only domains of files have rights elsewhere now.
	moves := func(d rules.Difference) bool { return d.Shape && (i > 0 || was.Domain(d.Domain) != nil) }
	if slices.ContainsFunc(rules.Differences(was, is), moves) {
		c.From += n.cfg.Horizon.Milliseconds()
	}
	c.Over = rules.Transition{Before: was, After: is, From: c.From}.Over()
	return nil
}

// latest returns the active rules.
func (a *LimitsAgent) latest() (*rules.Set, error) {
	n := a.node
	if n.record == nil || n.record.Limits.Latest() == nil {
		return rules.NewSet(nil)
	}
	s := n.record.Limits.Latest()
	return n.limits.parse(n.record.Limits.Set(s.Set), s.Sizes)
}

// lookUp finds the rule of a target, and checks a setting of it.
func (a *LimitsAgent) lookUp(t *Target, s *Setting, sets bool) error {
	n := a.node
	if sets {
		if err := s.check(t); err != nil {
			return err
		}
	}
	if t.Key != "" {
		t.RuleID, t.Window = 0, 0
		return nil
	}
	set, err := n.limits.latest()
	if err != nil {
		return err
	}
	r, err := find(set, t)
	if err != nil {
		if t.RuleID = n.limits.overridden(t); !sets && t.RuleID != 0 {
			return nil // of a rule that is there no more
		}
		if r, _ := find(a.local, t); r != nil && set.Find(r.ID) == nil {
			return fmt.Errorf("rule %q of domain %q is in the files of daemons, and overrides are for rules of the log: first rld limits apply the files of the domain", r.Path, r.Domain)
		}
		return err
	}
	t.Domain, t.Rule, t.RuleID, t.Window = r.Domain, r.Path, Number(r.ID), 0
	if r.Limit == nil || r.Limit.Unlimited {
		return fmt.Errorf("%v has no limit that an override could change", t)
	}
	t.Window = r.Limit.Window()
	if !sets {
		return nil
	}
	if s.Budget != nil && !(r.Limit.HasBudget && r.Limit.Consistency == rules.Eventual) {
		return fmt.Errorf("%v has no overage_budget, and an override adds none: apply rules with one", t)
	}
	o := Override{Target: *t, Setting: *s}
	if err := n.cfg.Language.Check(o.limit(r.Limit), n.limits.sizes()); err != nil {
		return fmt.Errorf("%v with %v: %w", t, s, err)
	}
	return nil
}

// resetFor returns how long the record has a reset, in milliseconds: as long as
// any rule needs it, which is two windows at most, or the refill of a bucket.
func (a *LimitsAgent) resetFor() (int64, error) {
	set, err := a.latest()
	if err != nil {
		return 0, err
	}
	longest := int64(keepEnded / 2)
	for _, r := range slices.Concat(set.Rules(), a.local.Rules()) {
		if l := r.Limit; l != nil && !l.Unlimited { // a bucket looks back until it is full
			longest = max(longest, l.Window()*(1+int64(l.Burst/max(l.Requests, 1))))
		}
	}
	return min(2*longest, maxFor), nil
}

// overridden returns the id of a rule that has an override, 0 for none.
func (a *LimitsAgent) overridden(t *Target) Number {
	n := a.node
	all := n.record.Limits.Overrides
	i := slices.IndexFunc(all, func(o Override) bool { return o.Rule == t.Rule && (t.Domain == "" || o.Domain == t.Domain) })
	if i < 0 {
		return 0
	}
	return all[i].RuleID
}

// effect returns the effect of an override of a rule.
func (a *LimitsAgent) effect(o *Override) rules.Effect {
	n := a.node
	set, err := n.limits.latest()
	if err != nil {
		return rules.Effect{Raises: true}
	}
	r := set.Find(rules.ID(o.RuleID))
	if r == nil {
		return rules.Effect{Raises: true}
	}
	return rules.EffectOf(r.Limit, o.limit(r.Limit))
}

// find returns the rule of a target: the one with its path, or the only one
// with its name.
func find(set *rules.Set, t *Target) (*rules.Rule, error) {
	var paths, named []*rules.Rule
	var known []string
	for _, r := range set.Rules() {
		if t.Domain != "" && r.Domain != t.Domain {
			continue
		}
		known = append(known, r.Path)
		switch t.Rule {
		case r.Path, r.Domain + ": " + r.Path: // as rld budget lists it
			paths = append(paths, r)
		case r.Display():
			named = append(named, r)
		}
	}
	found := paths
	if len(found) == 0 {
		found = named
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		hint := ": rld budget lists all"
		if near := suggest.Closest(t.Rule, known); near != "" {
			hint = fmt.Sprintf(": do you mean %q?", near)
		}
		return nil, fmt.Errorf("%v is not known%s", t, hint)
	}
	return nil, fmt.Errorf("%v is ambiguous: it is %q of domain %q and %q of domain %q", t, found[0].Path, found[0].Domain, found[1].Path, found[1].Domain)
}

// sizes returns the regions of the record with the daemons that are known.
func (a *LimitsAgent) sizes() []RegionSize {
	n := a.node
	var out []RegionSize
	for _, g := range n.record.Regions {
		s := RegionSize{Name: g.Name}
		if g.Name == n.cfg.Region {
			s.Daemons++
		}
		for _, p := range n.peers {
			if p.Region == g.Name {
				s.Daemons++
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b RegionSize) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// length returns milliseconds as text.
func length(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
