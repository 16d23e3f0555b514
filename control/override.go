package control

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/georld/rld/rules"
)

const (
	// MaxOverrides bounds the overrides.
	MaxOverrides = 10_000
	// maxOfTarget bounds those of one rule or key: the one in force, the next
	// one, and those that ended in a running window.
	maxOfTarget = 16
	// maxFor bounds the length of an override, in milliseconds.
	maxFor = 366 * 24 * 3_600_000
)

// Override changes one rule, or one key, for some time. It lies above the rule
// sets: it survives them, and moves no rights to other places.
//
// An override that only lowers acts from From to Until. One that raises acts
// from Start on, which is known when all regions have acknowledged it. Before
// Start each override acts where it lowers.
type Override struct {
	// Version is that of the entry that set it.
	Version Version `json:"version,omitzero"`
	Target
	Setting
	// From is its beginning and For its length, in Unix milliseconds and
	// milliseconds. A From of 0 becomes the time of the entry.
	From int64 `json:"from"`
	For  int64 `json:"for"`
	// Author and Reason are those of its command.
	Author string `json:"author,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Raises: it raises something of the rule. The leader sets it.
	Raises bool `json:"raises,omitempty"`
	// Start is the window start from which it is in force, 0 while it is
	// pending, and Until its end. That is 0 as long as it depends on Start.
	Start int64 `json:"start,omitempty"`
	Until int64 `json:"until,omitempty"`
	// Ended is the version that unset or replaced it, nil for none. It has its
	// effect until that is in force: Final is true when Until is its end.
	Ended *Version `json:"ended,omitempty"`
	Final bool     `json:"final,omitempty"`
	// Emergency is the number of the emergency override that it was, 0 for
	// none. Such a one never raises.
	Emergency Number `json:"emergency,omitzero"`
}

// Target is what an override changes: a rule or a key.
type Target struct {
	// Domain and Rule are those of a rule: its path, or the name of its limit
	// if no other rule has it. The leader replaces a name by the path. An empty
	// Domain is any that has the rule.
	Domain string `json:"domain,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// RuleID is rules.Rule.ID, and Window the length of its windows in
	// milliseconds. The leader sets both.
	RuleID Number `json:"rule_id,omitzero"`
	Window int64  `json:"window,omitempty"`
	// Key is the hash of a key in 16 hexadecimal digits, instead of a rule.
	// Records from before have 16 more, which mean nothing now.
	Key string `json:"key,omitempty"`
}

// Setting holds the values of an override. A nil field keeps that of the rule.
type Setting struct {
	// Requests are hits per window, Budget is the overage budget in parts per
	// million, of a rule that has one.
	Requests *uint32 `json:"requests,omitempty"`
	Budget   *uint32 `json:"budget,omitempty"`
	// Mode is ModeShadow or ModeEnforce, empty to keep that of the rule.
	Mode Mode `json:"mode,omitempty"`
	// Block denies each call of a key. Reset forgets the hits of a key once, at
	// once: its length is that in the record, and nothing unsets it.
	Block bool `json:"block,omitempty"`
	Reset bool `json:"reset,omitempty"`
}

// Mode is whether a rule denies calls.
type Mode string

// The modes of a rule.
const (
	ModeShadow  Mode = "shadow"
	ModeEnforce Mode = "enforce"
)

// OverrideChange sets or unsets the override of a rule or a key.
type OverrideChange struct {
	Override
	// Unset ends all overrides of the target. All else but the target is empty.
	Unset bool `json:"unset,omitempty"`
	// If is the version of the override that this one replaces. Without it a
	// target that has an override is refused.
	If *Version `json:"if,omitempty"`
}

// String returns the target for texts.
func (t *Target) String() string {
	switch {
	case t.Key != "":
		return "key " + t.Key
	case t.Domain == "":
		return fmt.Sprintf("rule %q", t.Rule)
	}
	return fmt.Sprintf("rule %q of domain %q", t.Rule, t.Domain)
}

// same reports whether two targets are one.
func (t *Target) same(o *Target) bool {
	return t.hash() == o.hash() && (t.Key != "" || t.RuleID == o.RuleID)
}

// hash returns the digits of Key that count.
func (t *Target) hash() string { return t.Key[:min(len(t.Key), keyDigits)] }

// keyDigits is the number of hexadecimal digits of a key's hash.
const keyDigits = 16

// String returns the setting for texts.
func (s *Setting) String() string {
	var all []string
	if s.Requests != nil {
		all = append(all, fmt.Sprintf("requests=%d", *s.Requests))
	}
	if s.Budget != nil {
		all = append(all, "overage_budget="+rules.PPM(*s.Budget).String())
	}
	if s.Mode != "" {
		all = append(all, "mode="+string(s.Mode))
	}
	if s.Block {
		all = append(all, "block")
	}
	if s.Reset {
		all = append(all, "reset")
	}
	return strings.Join(all, " ")
}

// check returns an error for a setting that no target of this kind has.
func (s *Setting) check(t *Target) error {
	_, err := hex.DecodeString(t.Key)
	switch ofRule := s.Requests != nil || s.Budget != nil || s.Mode != ""; {
	case (t.Rule == "") == (t.Key == ""):
		return fmt.Errorf("an override of rule %q and key %q: want one of them", t.Rule, t.Key)
	case t.Key != "" && (err != nil || len(t.Key) != keyDigits && len(t.Key) != 2*keyDigits || strings.ToLower(t.Key) != t.Key):
		return fmt.Errorf("key %q: want a hash of 16 hexadecimal digits", shorten(t.Key, 64))
	case s.Mode != "" && s.Mode != ModeShadow && s.Mode != ModeEnforce:
		return fmt.Errorf("mode %q of %v: want %s or %s", shorten(string(s.Mode), 32), t, ModeShadow, ModeEnforce)
	case t.Key != "" && (ofRule || s.Block == s.Reset):
		return fmt.Errorf("%v with %q: want either block or reset", t, s)
	case t.Key == "" && (!ofRule || s.Block || s.Reset):
		return fmt.Errorf("%v with %q: want requests, overage_budget or mode", t, s)
	}
	return nil
}

// limit returns the limit of a rule with the setting. The amounts of another
// window length than the target had do not count.
func (o *Override) limit(l *rules.Limit) *rules.Limit {
	if l == nil || l.Unlimited {
		return l
	}
	out := *l
	if o.Window == l.Window() {
		if o.Requests != nil {
			out = l.WithRequests(*o.Requests)
		}
		if o.Budget != nil && l.HasBudget {
			out.Budget = rules.PPM(*o.Budget)
		}
	}
	if o.Mode != "" {
		out.Shadow = o.Mode == ModeShadow
	}
	return &out
}

// above returns a limit with the settings of the override, which are those for
// the limit of the rule itself: the order of several ones has no effect.
func (o *Override) above(is, base *rules.Limit) *rules.Limit {
	out, set := *is, o.limit(base)
	if o.Requests != nil {
		out.Requests, out.Burst = set.Requests, set.Burst
	}
	if o.Budget != nil {
		out.Budget = set.Budget
	}
	if o.Mode != "" {
		out.Shadow = set.Shadow
	}
	return &out
}

// validate returns an error if the override breaks an invariant.
func (o *Override) validate() error {
	if err := o.check(&o.Target); err != nil {
		return err
	}
	if o.Window < 0 || o.From < 0 || o.For <= 0 || o.For > maxFor || o.Start < 0 || o.Until < 0 {
		return fmt.Errorf("the override of %v from %d for %d ms: want a positive length of at most %d", &o.Target, o.From, o.For, int64(maxFor))
	}
	return checkTexts(o.Author, o.Reason, o.Rule, o.Domain)
}

// bringIntoForce states from when the override, or its end, is in force.
func (o *Override) bringIntoForce(c *InForce) {
	window := max(o.Window, 1)
	if o.Start == 0 && o.Version.Compare(c.Version) <= 0 {
		o.Start = rules.CeilWindow(max(o.From, c.From), window)
		if o.Raises {
			o.Until = o.Start + rules.CeilWindow(o.For, window)
		}
	}
	if o.Ended != nil && !o.Final && o.Ended.Compare(c.Version) <= 0 {
		end := rules.CeilWindow(c.From, window)
		if o.Until == 0 || end < o.Until {
			o.Until = end
		}
		o.Final = true
	}
}

// Begins returns when the override has all of its effect, in Unix milliseconds,
// 0 while that is not known.
func (o *Override) Begins() int64 {
	if o.Raises {
		return o.Start
	}
	return o.From
}

// Acts reports whether the override has any effect at a time, in Unix
// milliseconds.
func (o *Override) Acts(at int64) bool { return at >= o.From && (o.Until == 0 || at < o.Until) }

// inForce reports whether the override is in force at a time.
func (o *Override) inForce(at int64) bool { return o.Start != 0 && at >= o.Start && o.Acts(at) }

// override makes a change of the overrides, at a version and a time.
func (l *Limits) override(c *OverrideChange, author, reason string, v Version, at int64) error {
	l.prune(at)
	if c.Unset {
		return l.unset(c, v, at)
	}
	o := c.Override
	if err := o.check(&o.Target); err != nil {
		return err
	}
	switch {
	case o.Reset && (o.From != 0 || c.If != nil):
		return fmt.Errorf("a reset of %v: it begins at once and replaces nothing, so it has no beginning and no version", &o.Target)
	case o.For <= 0 || o.For > maxFor:
		return fmt.Errorf("an override of %v for %s: want a length of 1 ms to %s", &o.Target, length(o.For), length(maxFor))
	case o.From != 0 && o.From < at:
		return fmt.Errorf("the beginning %s is in the past, it is %s now: want a later one, or none, for %v", when(o.From), when(at), &o.Target)
	case o.From > at+maxFor:
		return fmt.Errorf("an override of %v from %s: want a beginning before %s", &o.Target, when(o.From), when(at+maxFor))
	case o.Key == "" && o.RuleID == 0:
		return fmt.Errorf("an override of %v, which no leader looked up", &o.Target)
	}
	if !o.Reset {
		if err := l.replace(c, v, at); err != nil {
			return err
		}
	}
	o.Version, o.Author, o.Reason = v, author, reason
	o.Start, o.Until, o.Ended, o.Final, o.Emergency = 0, 0, nil, false, 0
	if o.From = max(o.From, at); !o.Raises {
		o.Until = o.From + o.For
	}
	return l.add(o)
}

// add adds an override.
func (l *Limits) add(o Override) error {
	count := 0
	for i := range l.Overrides {
		if l.Overrides[i].same(&o.Target) {
			count++
		}
	}
	switch {
	case count >= maxOfTarget:
		return fmt.Errorf("%v has %d overrides in its running window: want the next one when that ended", &o.Target, count)
	case len(l.Overrides) >= MaxOverrides:
		return fmt.Errorf("there are %d overrides: unset some of them first", len(l.Overrides))
	}
	l.Overrides = append(slices.Clone(l.Overrides), o)
	return o.validate()
}

// stays reports whether the override neither ended at a time nor was ended by
// another version. A reset never stays: nothing takes it back.
func (o *Override) stays(at int64) bool {
	return o.Ended == nil && !o.Reset && (o.Until == 0 || at < o.Until)
}

// present returns the override of a target that stays and is no emergency
// override, nil for none.
func (l *Limits) present(t *Target, at int64) *Override {
	for i := range l.Overrides {
		if o := &l.Overrides[i]; o.same(t) && o.Emergency == 0 && o.stays(at) {
			return o
		}
	}
	return nil
}

// replace ends the override that another one replaces.
func (l *Limits) replace(c *OverrideChange, v Version, at int64) error {
	o := l.present(&c.Target, at)
	switch {
	case o == nil && c.If != nil:
		return fmt.Errorf("%v has no override of version %v", &c.Target, *c.If)
	case o == nil:
		return nil
	case c.If == nil || *c.If != o.Version:
		return fmt.Errorf("there is override %v by %s: unset it, or replace it with --if-version %v; %v has %v", o.Version, o.Author, o.Version, &c.Target, &o.Setting)
	}
	l.end(v, func(e *Override) bool { return e.Version == o.Version && e.same(&c.Target) })
	return nil
}

// unset ends all overrides of a target.
func (l *Limits) unset(c *OverrideChange, v Version, at int64) error {
	is := func(o *Override) bool { return o.same(&c.Target) && o.stays(at) }
	if i := slices.IndexFunc(l.Overrides, func(o Override) bool { return is(&o) }); i < 0 {
		return fmt.Errorf("%v has no override: rld limits list and rld key list show all", &c.Target)
	}
	l.end(v, is)
	return nil
}

// end ends overrides at a version. Nobody uses a pending one but for what it
// lowers, so it goes at once.
func (l *Limits) end(v Version, which func(*Override) bool) {
	var out []Override
	for _, o := range l.Overrides {
		if !which(&o) {
			out = append(out, o)
		} else if o.Start != 0 {
			o.Ended = &v
			out = append(out, o)
		}
	}
	l.Overrides = out
}
