package node

import (
	"maps"
	"math"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
)

// ruleset is the rules in force.
type ruleset struct {
	set      *rules.Set
	override rules.Limit // scratch of limitOf
	shared   uint64      // the name that shares found last
	found    *rules.Rule // its rule
	// former is the limits that were in force before, by the shared names of
	// their rules, for as long as entries of them may matter.
	former map[uint64]*formerLimit
	// lowered is when each rule had a greater limit last, in Unix milliseconds,
	// 0 for never: hits of windows that began before may exceed its rights.
	lowered []int64
}

// formerLimit is a limit that is not in force any more.
type formerLimit struct {
	*rules.Limit
	until int64 // when its last entry expires, in Unix milliseconds
}

// keepUntil keeps the limit for an entry that expires later.
func (f *formerLimit) keepUntil(expires int64) { f.until = max(f.until, expires) }

// shares returns the rule in force with a name that daemons share, nil for
// none. Most changes in a row are of one rule.
func (s *ruleset) shares(name uint64) *rules.Rule {
	if s.shared != name || s.found == nil {
		s.shared, s.found = name, s.set.FindShared(name)
	}
	return s.found
}

// index returns the index of a rule in force, -1 for none. A call that was
// matched just before a reload has a rule of the previous set, which is found
// by its ID.
func (s *ruleset) index(r *rules.Rule) int32 {
	if r == nil {
		return -1
	}
	if all := s.set.Rules(); r.Index < len(all) && all[r.Index] == r {
		return int32(r.Index)
	}
	if is := s.set.Find(r.ID); is != nil {
		return int32(is.Index)
	}
	return -1
}

// counted returns the index of a rule if a limit counts on its grid, -1 for
// none: an override may count on another grid than the rule it replaces.
func (s *ruleset) counted(rule int32, l *rules.Limit) int32 {
	if rule < 0 {
		return -1
	}
	if own := s.set.Rules()[rule].Limit; own == l || sameGrid(own, l) {
		return rule
	}
	return -1
}

// lasting returns the fold that knows for how long hits matter. Hits that came
// with a limit of their own count for the rule of their key too, if they count
// on its grid: a sliding window weighs them for longer than a fixed one.
func lasting(h *Hit) quota.Fold {
	if h.Rule != nil && h.Limit != h.Rule.Limit && sameGrid(h.Rule.Limit, h.Limit) {
		return quota.Of(h.Rule.Limit)
	}
	return quota.Of(h.Limit)
}

// indexShared returns the index of the rule in force with a name that daemons
// share, -1 for none.
func (s *ruleset) indexShared(name uint64) int32 {
	if r := s.shares(name); r != nil {
		return int32(r.Index)
	}
	return -1
}

// limitOf returns the limit that a change is folded by: that of its rule, or
// one with the window of an override. inForce is false if the rule is not in
// force here, or counts on another grid now. Entries still follow the changes
// of such a rule by the limit that it had: nothing corrects a refund or the
// hits of a bucket later, when the rule is in force again. limitOf returns nil
// if the rule had no entry here, or is of each daemon alone now. The result is
// valid until the next call.
func (s *ruleset) limitOf(c *gossip.Change) (l *rules.Limit, inForce bool) {
	if c.Span.Rule == 0 {
		return overrideLimit(&s.override, c.Span.WindowLength), true
	}
	if r := s.shares(c.Span.Rule); r != nil {
		if replicated(r.Limit) {
			return r.Limit, true
		}
	} else if f := s.former[c.Span.Rule]; f != nil && replicated(f.Limit) {
		return f.Limit, false
	}
	return nil, false
}

// limitOfReceipt returns the limit of a receipt and its rule, nil for an
// override. Both are nil if the rule is not in force any more or counts on
// another grid. The limit is valid until the next call.
func (s *ruleset) limitOfReceipt(r *Receipt) (*rules.Limit, *rules.Rule) {
	if r.ID == 0 {
		return overrideLimit(&s.override, r.Length), nil
	}
	rule := s.set.Find(r.ID)
	if rule == nil || rule.Limit == nil || rule.Shared() != r.Rule {
		return nil, nil
	}
	return rule.Limit, rule
}

// overrideLimit sets l to a limit with the window of an override, nil if no
// override has a window of that length in milliseconds.
func overrideLimit(l *rules.Limit, length int64) *rules.Limit {
	if length < 1_000 || length%1_000 != 0 || length/1_000 > math.MaxUint32 {
		return nil
	}
	*l = rules.Limit{Unit: rules.Second, Multiplier: uint32(length / 1_000)}
	return l
}

// replicated reports whether daemons count the hits of a limit together.
func replicated(l *rules.Limit) bool { return l.Scope != rules.NodeLocal }

// sameGrid reports whether two limits share a key's counters.
func sameGrid(a, b *rules.Limit) bool {
	return a == b && a != nil || a != nil && b != nil && a.Grid() == b.Grid()
}

// SetRules puts other rules in force. Counters stay. The usage of a bucket
// drains at the new rate from now on, and keys expire by their new limits. The
// tallies of rules that are gone are dropped. SetRules visits every key and is
// not for the decision path.
func (n *Node) SetRules(at Instant, set *rules.Set) {
	now := n.millis(at)
	n.stats.setRules(n.rules.set, set)
	former := n.rules.former
	maps.DeleteFunc(former, func(_ uint64, f *formerLimit) bool { return f.until <= now })
	if former == nil {
		former = make(map[uint64]*formerLimit)
	}
	reindex(&n.keys.live, n.rules.set, set, now, former)
	reindex(&n.keys.overflow, n.rules.set, set, now, nil)
	n.keys.recount(set)
	n.rules, n.gate.cached = ruleset{set: set, former: former, lowered: n.rules.lowerings(set, now)}, make([]cached, len(set.Rules()))
	if n.replica != nil {
		n.replica.refoldAll(&n.keys, set, now)
	}
	if n.leases != nil {
		n.leases.SetRules(set)
	}
}

// reindex moves the entries to the rules that are in force from now on. A rule
// that became slower must keep its keys for longer than before. An entry whose
// rule is gone or counts on another grid now is left to expire, and its limit
// is added to former unless that is nil.
func reindex(t *keytable.Table, was, is *rules.Set, now int64, former map[uint64]*formerLimit) {
	for e := range t.All {
		if e.Rule < 0 {
			continue
		}
		old := was.Rules()[e.Rule]
		r := is.Find(old.ID)
		if r == nil || !sameGrid(old.Limit, r.Limit) {
			e.Rule = -1
			if former != nil && e.Expires() > now {
				addFormer(former, old, e.Expires())
			}
			continue
		}
		e.Rule = int32(r.Index)
		f := quota.Of(r.Limit)
		f.Adopt(&e.Cell, now)
		e.KeepUntil(f.Expires(&e.Cell))
	}
}

// addFormer adds the limit of a rule with an entry that expires at until. Each
// former limit has such an entry, so there are no more of them than keys.
func addFormer(former map[uint64]*formerLimit, r *rules.Rule, until int64) {
	name := r.Shared()
	if former[name] == nil {
		former[name] = &formerLimit{}
	}
	former[name].Limit = r.Limit
	former[name].keepUntil(until)
}
