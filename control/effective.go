package control

import (
	"cmp"
	"math"
	"slices"

	"github.com/georld/rld/rules"
)

// Effective are the limits that a daemon uses at one time.
type Effective struct {
	// Set are the rules with their overrides: those of the log, and in all
	// other domains those of files.
	Set *rules.Set
	// Keys are the overrides of keys, ordered by key.
	Keys []KeyOverride
	// Next is when the limits change without another entry, in Unix
	// milliseconds; math.MaxInt64 for never.
	Next int64
}

// KeyOverride is what overrides do to a key.
type KeyOverride struct {
	Key string
	// Blocked: each call is denied.
	Blocked bool
	// Reset is the version of the latest reset, zero for none, and ResetAt its
	// time in Unix milliseconds. Hits from before do not count any more in the
	// windows that ran then, nor in later ones.
	Reset   Version
	ResetAt int64
}

// Effective returns the limits in force at a time, by the clock of the daemon
// in Unix milliseconds. For pending limits these are the smaller amounts: of
// the rules before and after, and of rules with and without their override.
//
// held is the end of the windows in which this daemon may use rights although
// it learns nothing: peers that know of later limits do not extend it. After
// it, rights that pending limits move are not used. It is math.MaxInt64 for a
// daemon that holds none.
//
// It returns an error if a rule set cannot be read; the limits before then stay
// in force.
func (a *LimitsAgent) Effective(now, held int64) (*Effective, error) {
	n := a.node
	e := &effective{node: n, now: now, held: held, next: math.MaxInt64}
	if n.record == nil {
		return &Effective{Set: a.local, Next: e.next}, nil
	}
	emergencies := n.emergencies.active()
	for i := range n.emergencies.all {
		e.at(n.emergencies.all[i].End)
	}
	set, keys, err := e.of(&n.record.Limits, emergencies)
	if err == nil && len(n.limits.former) > 0 {
		set, keys, err = e.recovered(set, keys)
	}
	if err != nil {
		return nil, err
	}
	return &Effective{Set: set, Keys: keys, Next: e.next}, nil
}

// Keys returns the overrides of keys as Effective does, and when they change.
// It needs no rules.
func (a *LimitsAgent) Keys(now int64) (keys []KeyOverride, next int64) {
	e := &effective{node: a.node, now: now, next: math.MaxInt64}
	if a.node.record == nil {
		return nil, e.next
	}
	return e.keys(a.node.record.Limits.Overrides, a.node.emergencies.active()), e.next
}

// effective computes limits, and collects the times at which they change.
type effective struct {
	node            *Node
	now, held, next int64
}

// of returns the limits of a record. Its first set takes domains over from
// files, as each later one does from the set before.
func (e *effective) of(l *Limits, emergencies []Emergency) (*rules.Set, []KeyOverride, error) {
	a := &e.node.limits
	set := a.local
	for i := range l.Steps {
		s := &l.Steps[i]
		is, err := a.step(l, i)
		if err != nil {
			return nil, nil, err
		}
		if set, _, err = e.step(set, is, s.From); err != nil {
			return nil, nil, err
		}
	}
	set, err := set.Replace(e.files(l))
	if err != nil {
		return nil, nil, err
	}
	set, err = set.Replace(e.overrides(l.Overrides, emergencies))
	return set, e.keys(l.Overrides, emergencies), err
}

// files returns the function that lowers the limits of a rule that was adopted
// from files to those that this daemon has in its files now: what is lower acts
// where it arrives.
func (e *effective) files(l *Limits) func(*rules.Rule) *rules.Limit {
	return func(r *rules.Rule) *rules.Limit {
		if len(l.Local) == 0 || l.SupplierOf(r.Domain) != SupplierLocal {
			return r.Limit
		}
		if own := e.node.limits.local.Find(r.ID); own != nil && rules.EffectOf(r.Limit, own.Limit).Lowers {
			return rules.Lower(r.Limit, own.Limit)
		}
		return r.Limit
	}
}

// recovered returns the limits of a record after recoveries that dropped
// others: these count as well until those of the record are in force.
func (e *effective) recovered(set *rules.Set, keys []KeyOverride) (*rules.Set, []KeyOverride, error) {
	n, from := e.node, int64(0)
	if r := n.record.Limits.Recovered; r != nil {
		from = r.From
	}
	over := from != 0 && e.now >= from
	if !over {
		e.at(from)
	}
	var all []*rules.Set
	for i := range n.limits.former {
		is, blocked, err := e.of(&n.limits.former[i], nil)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, is)
		if !over {
			keys = append(keys, blocked...)
		}
	}
	is := all[0]
	for _, next := range append(all[1:], set) {
		var done bool
		var err error
		if is, done, err = e.step(is, next, from); err != nil {
			return nil, nil, err
		}
		over = over && done
	}
	n.limits.over = over
	return is, unique(keys), nil
}

// at notes a time of a change.
func (e *effective) at(at int64) {
	if at > e.now {
		e.next = min(e.next, at)
	}
}

// step returns the rules during the change to a set, and whether it is over.
func (e *effective) step(before, after *rules.Set, from int64) (*rules.Set, bool, error) {
	t := rules.Transition{Before: before, After: after, From: from, Now: e.now, Unaware: from == 0 && e.now >= e.held}
	nodes, next := t.Nodes()
	if next != 0 {
		e.at(next)
	} else if from != 0 && e.now >= from {
		return after, true, nil
	}
	if from == 0 {
		e.at(e.held)
	}
	set, err := rules.NewSet(nodes)
	return set, false, err
}

// overrides returns the function that applies overrides to the limit of a rule.
func (e *effective) overrides(all []Override, emergencies []Emergency) func(*rules.Rule) *rules.Limit {
	by := make(map[Number][]*Override)
	for i := range all {
		if o := &all[i]; o.Key == "" {
			by[o.RuleID] = append(by[o.RuleID], o)
			e.at(o.From)
			e.at(o.Start)
			e.at(o.Until)
		}
	}
	for i := range emergencies {
		if o := &emergencies[i]; o.Key == "" {
			by[o.RuleID] = append(by[o.RuleID], o.override())
		}
	}
	return func(r *rules.Rule) *rules.Limit {
		if list := by[Number(r.ID)]; len(list) > 0 && r.Limit != nil && !r.Limit.Unlimited {
			return e.limit(r.Limit, list)
		}
		return r.Limit
	}
}

// override returns the emergency override as one of the record.
func (x *Emergency) override() *Override {
	return &Override{Target: x.Target, Setting: x.Setting, Emergency: x.ID}
}

// limit returns the limit of a rule with its overrides: the one in force
// replaces the values of the rule, and all others lower it.
func (e *effective) limit(base *rules.Limit, all []*Override) *rules.Limit {
	is := base
	for _, o := range all {
		if o.Emergency == 0 && o.inForce(e.now) {
			is = o.limit(base)
			if o.Ended != nil && !slices.ContainsFunc(all, func(next *Override) bool { return next.Version == *o.Ended }) {
				is = rules.Lower(is, base)
			}
		}
	}
	for _, o := range all {
		switch {
		case !o.Acts(e.now):
		case o.Emergency != 0:
			is = rules.Lower(is, o.above(is, base))
		case !o.inForce(e.now):
			is = rules.Lower(is, o.limit(base))
		}
	}
	return is
}

// keys returns the overrides of keys.
func (e *effective) keys(all []Override, emergencies []Emergency) []KeyOverride {
	var out []KeyOverride
	note := func(o *Override) {
		e.at(o.From)
		e.at(o.Until)
		if o.Key == "" || !o.Acts(e.now) {
			return
		}
		k := KeyOverride{Key: o.hash(), Blocked: o.Block}
		if o.Reset {
			k.Reset, k.ResetAt = o.Version, o.From
		}
		out = append(out, k)
	}
	for i := range all {
		note(&all[i])
	}
	for i := range emergencies {
		note(emergencies[i].override())
	}
	return unique(out)
}

// unique merges the overrides of each key, in the order of keys.
func unique(all []KeyOverride) []KeyOverride {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b KeyOverride) int { return cmp.Compare(a.Key, b.Key) })
	var out []KeyOverride
	for _, k := range all {
		last := len(out) - 1
		if last < 0 || out[last].Key != k.Key {
			out = append(out, k)
			continue
		}
		out[last].Blocked = out[last].Blocked || k.Blocked
		if k.Reset.Compare(out[last].Reset) > 0 {
			out[last].Reset, out[last].ResetAt = k.Reset, k.ResetAt
		}
	}
	return out
}
