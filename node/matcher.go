package node

import (
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/rules"
)

// Matcher finds the rules and counters of a call, before the shards. It is
// immutable and safe for concurrent use. A reload makes another one.
type Matcher struct {
	set    *rules.Set
	hasher rules.Hasher
	keys   []ruleKeys // by the index of the rule
	opt    MatcherOptions
	// originals are the keys of opt.Resets by those that count in their place.
	originals map[crdt.Key]crdt.Key
	special   bool // some keys are blocked or reset, or count under two secrets
}

// ruleKeys makes the keys of a rule for a matcher.
type ruleKeys struct {
	rules.RuleKeys
	plain bool // see Admit
}

// MatcherOptions are the operator's settings for all calls.
type MatcherOptions struct {
	// AllQuotas is Policy.AllQuotas.
	AllQuotas bool
	// ChargeDenied makes overrides charge denied hits, as rules do by their own
	// setting.
	ChargeDenied bool
	// Next is the next secret, while hits count under both; nil for one secret.
	Next *NextSecret
	// Overridden gets the length of the window of each override in a call, in
	// milliseconds. It may be called by several goroutines, must not wait, and
	// may be nil.
	Overridden func(length int64)
	// Blocked are keys whose calls are denied. It must not be modified.
	Blocked map[crdt.Key]bool
	// Resets are keys that were reset. It must not be modified.
	Resets map[crdt.Key]KeyReset
}

// NewMatcher returns a matcher for a set of rules. The secret of the hasher
// must stay the same for counters to be found again.
func NewMatcher(set *rules.Set, h rules.Hasher, o MatcherOptions) *Matcher {
	f := &Matcher{set: set, hasher: h, opt: o, special: len(o.Blocked) > 0 || len(o.Resets) > 0 || o.Next != nil}
	f.keys = make([]ruleKeys, len(set.Rules()))
	for i, r := range set.Rules() {
		f.keys[i] = ruleKeys{h.Rule(r), countsPlainly(r)}
	}
	if len(o.Resets) > 0 {
		f.originals = make(map[crdt.Key]crdt.Key, len(o.Resets))
		for k, r := range o.Resets {
			f.originals[r.To] = k
		}
		if o.Next != nil {
			for k, r := range o.Next.Resets {
				f.originals[r.To] = k
			}
		}
	}
	return f
}

// Rules returns the set in force.
func (f *Matcher) Rules() *rules.Set { return f.set }

// Resolve matches the descriptors of a call, applies overrides and replaces,
// and hashes the keys of limited ones. It returns an *InputError for a
// malformed call. It does not allocate once the call has its memory.
func (f *Matcher) Resolve(c *Call) error {
	c.Receipts, c.resets, c.twins = c.Receipts[:0], false, c.twins[:0]
	if err := validate(c); err != nil {
		return err
	}
	n := len(c.Descriptors)
	if c.Refundable && !c.Peek {
		c.Receipts = slices.Grow(c.Receipts, n)[:n]
		clear(c.Receipts)
	}
	if n > cap(c.Statuses) || n > cap(c.hits) {
		c.Statuses, c.hits = make([]Status, n), make([]Hit, n)
	}
	c.Statuses, c.hits = c.Statuses[:n], c.hits[:n]
	for i := range n { // as literals, which is faster than clear for one or two
		c.Statuses[i], c.hits[i] = Status{}, Hit{}
	}
	// Statuses point into overrides, so it must not move while it fills.
	c.overrides = c.overrides[:0]
	if n > cap(c.overrides) {
		c.overrides = make([]rules.Limit, 0, n)
	}
	domain := f.set.Domain(c.Domain)
	if domain == nil {
		return nil
	}
	replaces := false
	for i := range c.Descriptors {
		r := f.match(domain, c, i)
		replaces = replaces || r != nil && r.Limit != nil && len(r.Limit.Replaces) > 0
	}
	if replaces {
		c.dropReplaced()
	}
	for i := range c.Statuses {
		st := &c.Statuses[i]
		if st.Limit == nil {
			continue
		}
		d, hit := &c.Descriptors[i], &c.hits[i]
		hit.Limit, hit.Rule, hit.N, hit.Peek = st.Limit, st.Rule, d.Hits, c.Peek
		if st.Rule != nil && st.Limit == st.Rule.Limit {
			keys := &f.keys[st.Rule.Index]
			hit.Key, hit.plain = keys.Key(d.Entries), keys.plain
		} else {
			hit.Key, c.key = f.hasher.Key(c.key[:0], c.Domain, d.Entries, patterns(st, d), st.Limit.Grid())
		}
		if f.special {
			f.checkKey(c, i)
		}
	}
	if f.opt.Next != nil {
		f.addTwins(c)
	}
	return nil
}

// checkKey blocks the hit of descriptor i if its key is blocked, and notes
// whether its key was reset.
func (f *Matcher) checkKey(c *Call, i int) {
	if f.opt.Blocked[c.hits[i].Key] || f.opt.Next != nil && f.opt.Blocked[f.nextKey(c, i)] {
		c.block(i)
	} else if _, reset := f.opt.Resets[c.hits[i].Key]; reset {
		c.resets = true
	}
}

// match sets the status of descriptor i and returns the rule whose replaces
// count: none for an override.
func (f *Matcher) match(domain *rules.Domain, c *Call, i int) *rules.Rule {
	d, st := &c.Descriptors[i], &c.Statuses[i]
	st.Rule = domain.Match(d.Entries)
	if d.Override.Unit != rules.NoUnit {
		c.overrides = append(c.overrides, rules.Limit{
			Unit: d.Override.Unit, Multiplier: 1, Requests: d.Override.Requests,
			ChargeDenied: f.opt.ChargeDenied,
		})
		st.Limit = &c.overrides[len(c.overrides)-1]
		if f.opt.Overridden != nil {
			f.opt.Overridden(st.Limit.Window())
		}
		return nil
	}
	if st.Rule == nil || st.Rule.Limit == nil {
		return st.Rule
	}
	if st.Rule.Limit.Unlimited {
		st.Unlimited = true
	} else {
		st.Limit = st.Rule.Limit
	}
	return st.Rule
}

// block replaces the limit of descriptor i, a copy of its own or that of a
// rule, by one that admits nothing.
func (c *Call) block(i int) {
	st := &c.Statuses[i]
	blocked := st.Limit.Blocked()
	if c.Descriptors[i].Override.Unit == rules.NoUnit {
		c.overrides = append(c.overrides, blocked)
		st.Limit = &c.overrides[len(c.overrides)-1]
	} else {
		*st.Limit = blocked
	}
	st.Blocked, c.hits[i].Limit, c.hits[i].plain = true, st.Limit, false
}

// dropReplaced drops every matched limit whose name another matched limit of
// the call lists. Unlimited rules and dropped ones still drop others.
func (c *Call) dropReplaced() {
	for i := range c.Statuses {
		by := c.ownLimit(i)
		if by == nil {
			continue
		}
		for _, name := range by.Replaces {
			for j := range c.Statuses {
				if l := c.ownLimit(j); l != nil && l.Name == name {
					c.Statuses[j].Limit = nil
					c.Statuses[j].Unlimited = false
				}
			}
		}
	}
}

// ownLimit returns the configured limit of descriptor i, nil if it has none or
// an override replaces it.
func (c *Call) ownLimit(i int) *rules.Limit {
	r := c.Statuses[i].Rule
	if r == nil || c.Descriptors[i].Override.Unit != rules.NoUnit {
		return nil
	}
	return r.Limit
}

// patterns returns the patterns that replace values in the counter key. An
// override counts the descriptor that it came with, not the pool of its rule.
func patterns(st *Status, d *rules.Descriptor) []string {
	if st.Rule == nil || d.Override.Unit != rules.NoUnit {
		return nil
	}
	return st.Rule.Patterns
}

// Hits returns the hits of a resolved call, one per descriptor.
func (c *Call) Hits() []Hit { return c.hits }

// Decide combines the verdicts on a call once its hits are probed.
func (f *Matcher) Decide(c *Call) {
	if len(c.twins) > 0 {
		c.link()
	}
	c.Decision = Decide(c.Statuses, Policy{AllQuotas: f.opt.AllQuotas, Peek: c.Peek})
}
