package control

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// NothingToDo is the beginning of the text that refuses a command whose result
// is there already.
const NothingToDo = "nothing to do"

const (
	// maxSets bounds the rule sets of a record, and maxSetsPacked their packed
	// forms, beyond those that are in force or will be.
	maxSets       = 10
	maxSetsPacked = 1 << 20
	// maxSteps bounds the steps.
	maxSteps = 10
	// maxApplied bounds the versions of rules that a record knows.
	maxApplied = 100
	// maxLocal bounds the domains whose rules were adopted from files.
	maxLocal = 1_000
	// keepEnded is how long what has ended is kept, in milliseconds: clocks
	// differ.
	keepEnded = 60_000
)

// Limits is the part of a record about limits. What may admit more, or moves
// rights, is *pending* until all regions have acknowledged its version: then an
// entry (InForce) states from when it is in force.
type Limits struct {
	// Sets are the rule sets that a step needs, and the latest others, the
	// latest applied one last.
	Sets []RuleSet `json:"sets,omitempty"`
	// Steps are the rule sets that are in force in any window, the oldest
	// first. The last one is the active set, and may be pending.
	Steps []Step `json:"steps,omitempty"`
	// Applied are the latest versions of the rules, the oldest first.
	Applied []RulesVersion `json:"applied,omitempty"`
	// Overrides lie above the rules, the oldest first.
	Overrides []Override `json:"overrides,omitempty"`
	// Local are the domains, in their order, whose rules were adopted from
	// files of daemons: see RulesChange.Adopt.
	Local []string `json:"local,omitempty"`
	// Entered are the emergency overrides that became entries.
	Entered []Entered `json:"entered,omitempty"`
	// Recovered is the latest recovery, nil for none.
	Recovered *RecoveredLimits `json:"recovered,omitempty"`
}

// RecoveredLimits makes all daemons acknowledge the limits of a recovery:
// before, some of them may use limits of entries that the recovery dropped.
type RecoveredLimits struct {
	Version Version `json:"version"`
	// From is when the limits of the recovery are in force, in Unix
	// milliseconds, 0 while they are pending.
	From int64 `json:"from,omitempty"`
}

// RulesVersion is a version of the rules.
type RulesVersion struct {
	Version Version `json:"version"`
	Set     string  `json:"set"` // the hash
}

// Step is a rule set from its version on.
type Step struct {
	Version Version `json:"version"`
	Set     string  `json:"set"` // the hash
	// Sizes are those of the regions when it was applied: the placement of
	// rights depends on them.
	Sizes []RegionSize `json:"sizes,omitempty"`
	// From is when the set comes into force, in Unix milliseconds, 0 while it
	// is pending: each rule with the first window that starts then or later.
	// Over is when the step before has no effect any more.
	From int64 `json:"from,omitempty"`
	Over int64 `json:"over,omitempty"`
}

// RegionSize is the number of daemons of a region.
type RegionSize struct {
	Name    string `json:"name"`
	Daemons int    `json:"daemons"`
}

// RulesChange applies a rule set, or one that was applied before.
type RulesChange struct {
	Set      *RuleSet `json:"set,omitempty"`
	Rollback *Version `json:"rollback,omitempty"`
	// Adopt: the set has the files of a daemon, which supply their domains from
	// now on. They replace all rules that were adopted before, and no others. A
	// set that is applied, and a version that is rolled back to, replace all
	// rules but those that were adopted. A domain that is applied is none of
	// files any more.
	Adopt bool `json:"adopt,omitempty"`
	// If is the version of the rules that the change replaces, nil for any.
	If *Version `json:"if,omitempty"`

	// The leader sets these. Set has all rules then, and Domains are those of
	// the former Set. Rules, Lowers and Raises count the rules of the set, and
	// those of them that the change lowers and raises.
	Domains []string     `json:"domains,omitempty"`
	Sizes   []RegionSize `json:"sizes,omitempty"`
	Rules   int          `json:"rules,omitempty"`
	Lowers  int          `json:"lowers,omitempty"`
	Raises  int          `json:"raises,omitempty"`
}

// InForce states that all regions have acknowledged a version.
type InForce struct {
	Version Version `json:"version"`
	// The leader sets these, as in Step.
	From int64 `json:"from,omitempty"`
	Over int64 `json:"over,omitempty"`
}

// SupplierOf is a source of rules.
type SupplierOf string

// The sources: commands, or the files and services that each daemon reads.
const (
	SupplierLog   SupplierOf = "log"
	SupplierLocal SupplierOf = "local"
)

// Latest returns the active set, nil if no rules were applied.
func (l *Limits) Latest() *Step {
	if len(l.Steps) == 0 {
		return nil
	}
	return &l.Steps[len(l.Steps)-1]
}

// Set returns the rule set with a hash, nil if it is not kept.
func (l *Limits) Set(hash string) *RuleSet {
	i := slices.IndexFunc(l.Sets, func(s RuleSet) bool { return s.Hash == hash })
	if i < 0 {
		return nil
	}
	return &l.Sets[i]
}

// SupplierOf returns the supplier of a domain of the log.
func (l *Limits) SupplierOf(domain string) SupplierOf {
	if _, local := slices.BinarySearch(l.Local, domain); local {
		return SupplierLocal
	}
	return SupplierLog
}

// Pending returns the latest version that is not in force, zero for none.
func (l *Limits) Pending() Version {
	var latest Version
	note := func(v Version) {
		if v.Compare(latest) > 0 {
			latest = v
		}
	}
	if s := l.Latest(); s != nil && s.From == 0 {
		note(s.Version)
	}
	if r := l.Recovered; r != nil && r.From == 0 {
		note(r.Version)
	}
	for i := range l.Overrides {
		switch o := &l.Overrides[i]; {
		case o.Ended != nil && !o.Final:
			note(*o.Ended)
		case o.Start == 0:
			note(o.Version)
		}
	}
	return latest
}

// ChangeState is the state of the change of a version.
type ChangeState struct {
	// Pending: not all regions have acknowledged it.
	Pending bool
	// From is when it is in force, and Until its end, in Unix milliseconds, 0
	// if it is not known or there is none.
	From, Until int64
}

// StateOf returns the state of the change that made a version: of rules, or of
// an override. It is zero for any other version.
func (l *Limits) StateOf(v Version) ChangeState {
	for i := range l.Steps {
		if s := &l.Steps[i]; s.Version == v {
			return ChangeState{Pending: s.From == 0, From: s.From}
		}
	}
	for i := range l.Overrides {
		switch o := &l.Overrides[i]; {
		case o.Version == v && o.Reset:
			return ChangeState{Pending: o.Start == 0, From: o.From}
		case o.Version == v:
			return ChangeState{Pending: o.Start == 0, From: o.Begins(), Until: o.Until}
		}
	}
	for i := range l.Overrides { // an entry that only ends one
		if o := &l.Overrides[i]; o.Ended != nil && *o.Ended == v {
			if !o.Final { // Until is still its former end
				return ChangeState{Pending: true}
			}
			return ChangeState{From: o.Until}
		}
	}
	return ChangeState{}
}

// prune drops what has no effect any more at a time of the leader, in Unix
// milliseconds.
func (l *Limits) prune(at int64) {
	for len(l.Steps) > 1 && l.Steps[1].From > 0 && at-keepEnded >= l.Steps[1].Over {
		l.Steps = l.Steps[1:]
	}
	l.Overrides = without(l.Overrides, func(o *Override) bool { return o.Until != 0 && at-keepEnded >= o.Until })
	l.Entered = without(l.Entered, func(e *Entered) bool { return at-maxEmergency.Milliseconds()-keepEnded >= e.Until })
}

// without returns the items that a condition does not hold for, nil for none.
func without[T any](all []T, drop func(*T) bool) []T {
	var out []T
	for i := range all {
		if !drop(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

// apply makes a change of the rules at a version and a time.
func (l *Limits) apply(c *RulesChange, v Version, at int64) error {
	l.prune(at)
	was := l.Latest()
	if err := l.expect(c.If); err != nil {
		return err
	}
	set, err := l.wanted(c)
	if err != nil {
		return err
	}
	if was != nil && was.Set == set.Hash && slices.Equal(was.Sizes, c.Sizes) && (!c.Adopt || slices.Equal(l.Local, c.Domains)) {
		return fmt.Errorf("%s: version %v of the rules has these files", NothingToDo, was.Version)
	}
	steps := slices.Clone(l.Steps)
	if was != nil && was.From == 0 { // all daemons still have at most the rights of the step before
		steps = steps[:len(steps)-1]
	}
	if len(steps) >= maxSteps {
		return fmt.Errorf("%d changes of the rules wait for the end of running windows: want the next one after %s", len(steps)-1, when(steps[1].Over+keepEnded))
	}
	l.Steps = append(steps, Step{Version: v, Set: set.Hash, Sizes: c.Sizes})
	l.Applied = append(slices.Clone(l.Applied), RulesVersion{v, set.Hash})
	l.Applied = l.Applied[max(0, len(l.Applied)-maxApplied):]
	l.Sets = without(l.Sets, func(s *RuleSet) bool { return s.Hash == set.Hash })
	l.Sets = append(l.Sets, *set)
	l.forget()
	l.supply(c)
	return nil
}

// expect returns an error if the rules have another version than an operator
// expects.
func (l *Limits) expect(want *Version) error {
	if want == nil {
		return nil
	}
	var is Version
	if s := l.Latest(); s != nil {
		is = s.Version
	}
	if is != *want {
		return fmt.Errorf("the rules have version %v, not %v: compare again with those, and apply to version %v", is, *want, is)
	}
	return nil
}

// wanted returns the set of a change.
func (l *Limits) wanted(c *RulesChange) (*RuleSet, error) {
	if c.Set == nil && (c.Rollback == nil || c.Adopt) {
		return nil, fmt.Errorf("a change of the rules: want a set, or a version to roll back to")
	}
	if c.Set != nil {
		if len(c.Set.Data) > maxSetPacked || c.Set.Bytes > MaxSetBytes || len(c.Set.Hash) > 64 {
			return nil, fmt.Errorf("rules with %d bytes, %d compressed: want at most %d and %d", c.Set.Bytes, len(c.Set.Data), MaxSetBytes, maxSetPacked)
		}
		set := *c.Set
		return &set, nil
	}
	i := slices.IndexFunc(l.Applied, func(a RulesVersion) bool { return a.Version == *c.Rollback })
	if i < 0 {
		early := ""
		if len(l.Applied) == maxApplied {
			early = ", and earlier ones that are not known any more"
		}
		return nil, fmt.Errorf("version %v is none of the rules: they are %s%s", *c.Rollback, l.versions(), early)
	}
	set := l.Set(l.Applied[i].Set)
	if set == nil {
		return nil, fmt.Errorf("the files of version %v are not kept any more: those of %s are", *c.Rollback, l.versions())
	}
	kept := *set
	return &kept, nil
}

// versions lists the versions whose files are kept.
func (l *Limits) versions() string {
	var all []string
	for _, a := range l.Applied {
		if l.Set(a.Set) != nil {
			all = append(all, a.Version.String())
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// forget drops the oldest rule sets that no step needs.
func (l *Limits) forget() {
	kept, size := 0, 0
	all := slices.Clone(l.Sets)
	slices.Reverse(all)
	all = without(all, func(s *RuleSet) bool {
		kept, size = kept+1, size+len(s.Data)
		needed := slices.ContainsFunc(l.Steps, func(o Step) bool { return o.Set == s.Hash })
		return !needed && (kept > maxSets || size > maxSetsPacked)
	})
	slices.Reverse(all)
	l.Sets = all
}

// bringIntoForce states from when pending versions are in force. What has ended
// meanwhile is dropped, or the leader would ask again for ever.
func (l *Limits) bringIntoForce(c *InForce, at int64) error {
	if pending := l.Pending(); c.Version != pending || pending == (Version{}) {
		return fmt.Errorf("version %v of the limits is not pending: %v is", c.Version, pending)
	}
	l.prune(at)
	if c.From <= 0 {
		return fmt.Errorf("version %v of the limits in force from %d: want a time", c.Version, c.From)
	}
	l.Steps = slices.Clone(l.Steps)
	if s := l.Latest(); s != nil && s.From == 0 {
		s.From, s.Over = c.From, max(c.From, c.Over)
	}
	if r := l.Recovered; r != nil && r.From == 0 {
		l.Recovered = &RecoveredLimits{r.Version, c.From}
	}
	l.Overrides = slices.Clone(l.Overrides)
	for i := range l.Overrides {
		l.Overrides[i].bringIntoForce(c)
	}
	return nil
}

// supply notes the source of the domains of a change.
func (l *Limits) supply(c *RulesChange) {
	if c.Adopt {
		l.Local = slices.Clone(c.Domains)
		return
	}
	l.Local = without(l.Local, func(domain *string) bool { return slices.Contains(c.Domains, *domain) })
}

// validate returns an error if the limits break an invariant.
func (l *Limits) validate() error {
	switch {
	case len(l.Sets) > maxSets+maxSteps || len(l.Steps) > maxSteps || len(l.Applied) > maxApplied:
		return fmt.Errorf("%d rule sets, %d steps and %d versions: want at most %d, %d and %d", len(l.Sets), len(l.Steps), len(l.Applied), maxSets+maxSteps, maxSteps, maxApplied)
	case len(l.Overrides) > MaxOverrides || len(l.Local) > maxLocal || len(l.Entered) > maxEntered:
		return fmt.Errorf("%d overrides, %d domains of files and %d emergency overrides: want at most %d, %d and %d", len(l.Overrides), len(l.Local), len(l.Entered), MaxOverrides, maxLocal, maxEntered)
	}
	for i := range l.Steps {
		s := &l.Steps[i]
		if l.Set(s.Set) == nil {
			return fmt.Errorf("the rule set %q of version %v is not there", s.Set, s.Version)
		}
		if s.From == 0 && i < len(l.Steps)-1 {
			return fmt.Errorf("version %v of the rules is pending before another one", s.Version)
		}
	}
	for i := range l.Overrides {
		if err := l.Overrides[i].validate(); err != nil {
			return err
		}
	}
	if !slices.IsSorted(l.Local) {
		return fmt.Errorf("domains of files %v: want them in their order", l.Local)
	}
	return checkTexts(l.Local...)
}

// verify returns an error if the content of a rule set does not match its hash.
func (l *Limits) verify() error {
	for i := range l.Sets {
		if _, err := l.Sets[i].Files(); err != nil {
			return err
		}
	}
	return nil
}

// when returns a time in Unix milliseconds for texts.
func when(at int64) string { return time.UnixMilli(at).UTC().Format(time.RFC3339) }
