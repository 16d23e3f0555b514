package node

import (
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// Stats is what a node counted, for metrics and auditors.
type Stats struct {
	LiveKeys, MaxKeys int
	OverflowKeys      int
	// Degraded counts answered descriptors by reason, indexed by Degraded.
	Degraded [degradedKinds]uint64
	// ClockOffset is how far the clock's physical reading is ahead of the
	// wall, in nanoseconds.
	ClockOffset int64
}

// Add adds another shard's numbers; the clock's offset is the larger one.
func (s *Stats) Add(o Stats) {
	s.LiveKeys += o.LiveKeys
	s.MaxKeys += o.MaxKeys
	s.OverflowKeys += o.OverflowKeys
	for i := range s.Degraded {
		s.Degraded[i] += o.Degraded[i]
	}
	s.ClockOffset = max(s.ClockOffset, o.ClockOffset)
}

// Stats returns a snapshot.
func (n *Node) Stats() Stats {
	return Stats{
		LiveKeys: n.live.len(), MaxKeys: n.cfg.MaxKeys, OverflowKeys: n.overflow.len(),
		Degraded: n.degraded, ClockOffset: int64(n.clock.Offset()),
	}
}

// Tallies calls yield for each rule in force, in the order of the set, and
// once with a nil rule for overrides on descriptors that no rule matches.
func (n *Node) Tallies(yield func(*rules.Rule, quota.Tally)) {
	for i, r := range n.rules {
		yield(r, n.tallies[i])
	}
	yield(nil, n.tallies[len(n.rules)])
}

// count adds an answered hit to its rule's tally.
func (n *Node) count(h *Hit, st *Status) {
	if st.Degraded != NotDegraded {
		n.degraded[st.Degraded]++
	}
	t := &n.tallies[len(n.rules)]
	if i := n.ruleIndex(h.Rule); i >= 0 {
		t = &n.tallies[i]
	}
	switch {
	case st.Over && h.Limit.Shadow && st.passed:
		t.Shadowed++
		t.HitsOver += h.N
	case st.Over:
		t.Denied++
		t.HitsOver += h.N
	case st.passed:
		t.Allowed++
		t.Fitted(h.Limit, st.Remaining, h.N, n.cfg.NearLimit)
	default: // it fits, and the call was refused for another
		t.Denied++
		if st.charge {
			t.Fitted(h.Limit, st.Remaining, h.N, n.cfg.NearLimit)
		}
	}
}

// ruleIndex returns the index of a rule in force, -1 for none. A call that
// was matched just before a reload brings a rule of the set before: it is
// found by its ID.
func (n *Node) ruleIndex(r *rules.Rule) int32 {
	if r == nil {
		return -1
	}
	if r.Index < len(n.rules) && n.rules[r.Index] == r {
		return int32(r.Index)
	}
	if i, ok := n.byID[r.ID]; ok {
		return int32(i)
	}
	return -1
}

// SetRules puts other rules in force. Counters stay, and expire by what their
// rule says now; the tallies of rules that are gone go. It visits every key
// and is not for the decision path.
func (n *Node) SetRules(all []*rules.Rule) {
	byID := make(map[rules.ID]int, len(all))
	tallies := make([]quota.Tally, len(all)+1)
	for i, r := range all {
		byID[r.ID] = i
		if was, ok := n.byID[r.ID]; ok {
			tallies[i] = n.tallies[was]
		}
	}
	tallies[len(all)] = n.tallies[len(n.rules)]
	n.live.reindex(n.rules, all, byID, n.now)
	n.overflow.reindex(n.rules, all, byID, n.now)
	n.rules, n.byID, n.tallies = all, byID, tallies
}

// reindex points the entries at the rules that are in force from now on. A
// rule that was slowed down must hold its keys for longer than they were
// stored for.
func (s *store) reindex(old, all []*rules.Rule, byID map[rules.ID]int, now int64) {
	for i := range s.used {
		e := s.at(i)
		if e.rule < 0 {
			continue
		}
		was := old[e.rule]
		at, ok := byID[was.ID]
		if !ok {
			e.rule = -1
			continue
		}
		e.rule = int32(at)
		if l := all[at].Limit; l != nil && was.Limit != nil && l.Grid() == was.Limit.Grid() {
			quota.Rerate(was.Limit, l, &e.cell, now)
			e.expires = max(e.expires, quota.Expires(l, &e.cell))
		}
	}
}
