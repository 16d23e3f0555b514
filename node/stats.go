package node

import (
	"github.com/georld/rld/hlc"
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
	// Cells is the replicated cells held, Merged how many told ones were taken
	// in since the start.
	Cells  int
	Merged uint64
	// Refusals counts answered descriptors that gates refused, indexed by Gate.
	Refusals [gates]uint64
	TransferStats
	// ClockForward and ClockBackward count the steps of the wall clock.
	ClockForward, ClockBackward uint64
}

// Add adds another shard's numbers; of the clock, which all shards read, the
// larger ones.
func (s *Stats) Add(o Stats) {
	s.LiveKeys += o.LiveKeys
	s.MaxKeys += o.MaxKeys
	s.OverflowKeys += o.OverflowKeys
	for i := range s.Degraded {
		s.Degraded[i] += o.Degraded[i]
	}
	for i := range s.Refusals {
		s.Refusals[i] += o.Refusals[i]
	}
	s.Given += o.Given
	s.Received += o.Received
	s.Messages += o.Messages
	s.Cells += o.Cells
	s.Merged += o.Merged
	s.ClockOffset = max(s.ClockOffset, o.ClockOffset)
	s.ClockForward = max(s.ClockForward, o.ClockForward)
	s.ClockBackward = max(s.ClockBackward, o.ClockBackward)
}

// Stats returns a snapshot.
func (n *Node) Stats() Stats {
	steps := n.clock.Steps()
	var cells int
	var merged uint64
	if n.replica != nil {
		cells, merged = n.replica.engine.Size()
	}
	return Stats{
		Cells: cells, Merged: merged,
		LiveKeys: n.live.len(), MaxKeys: n.cfg.MaxKeys, OverflowKeys: n.overflow.len(),
		Degraded: n.degraded, Refusals: n.refusals, TransferStats: n.transfers, ClockOffset: int64(n.clock.Offset()),
		ClockForward: uint64(steps.Forward), ClockBackward: uint64(steps.Backward),
	}
}

// Tallies calls yield for each rule in force, in the order of the set, and
// once with a nil rule for overrides on descriptors that no rule matches.
func (n *Node) Tallies(yield func(*rules.Rule, quota.Tally)) {
	all := n.set.Rules()
	for i, r := range all {
		yield(r, n.tallies[i])
	}
	yield(nil, n.tallies[len(all)])
}

// Offered calls yield for each rule in force that has rights, with what was asked
// for so far.
func (n *Node) Offered(yield func(rule, hits uint64)) {
	for i, r := range n.set.Rules() {
		if r.Limit != nil && r.Limit.HasRights() {
			yield(SharedRule(r), n.tallies[i].Offered)
		}
	}
}

// Time returns the hybrid logical clock, as messages carry it.
func (n *Node) Time(at Instant) hlc.Timestamp { return n.clock.Now(at) }

// count adds an answered hit to its rule's tally.
func (n *Node) count(h *Hit, st *Status) {
	if st.Degraded != NotDegraded {
		n.degraded[st.Degraded]++
	}
	if st.Over {
		n.refusals[st.Gate]++
	}
	t := &n.tallies[len(n.tallies)-1]
	if i := n.ruleIndex(h.Rule); i >= 0 {
		t = &n.tallies[i]
	}
	t.Offer(h.N)
	if st.Gate == RightsGate {
		t.Ungranted(h.Limit, st.room, h.N)
	}
	switch {
	case st.Over && h.Limit.Shadow && st.passed:
		t.Shadowed++
		t.Refused(h.N)
	case st.Over:
		t.Denied++
		t.Refused(h.N)
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
	if all := n.set.Rules(); r.Index < len(all) && all[r.Index] == r {
		return int32(r.Index)
	}
	if is := n.set.Find(r.ID); is != nil {
		return int32(is.Index)
	}
	return -1
}

// SetRules puts other rules in force from an instant on. Counters stay, what
// is in use of a bucket then drains at its new rate, and keys expire by what
// their rule says now; the tallies of rules that are gone go. It visits every
// key and is not for the decision path.
func (n *Node) SetRules(at Instant, set *rules.Set) {
	now := n.millis(at)
	tallies := make([]quota.Tally, len(set.Rules())+1)
	for i, r := range n.set.Rules() {
		if is := set.Find(r.ID); is != nil {
			tallies[is.Index] = n.tallies[i]
		}
	}
	tallies[len(tallies)-1] = n.tallies[len(n.tallies)-1]
	n.live.reindex(n.set, set, now)
	n.overflow.reindex(n.set, set, now)
	n.set, n.tallies, n.held = set, tallies, make([]held, len(set.Rules()))
	if n.replica != nil {
		n.replica.setRules(set)
		n.refoldAll(now)
	}
}

// reindex points the entries at the rules that are in force from now on. A
// rule that was slowed down must hold its keys for longer than they were
// stored for. An entry whose rule is gone or counts on another grid now is
// left to expire.
func (s *store) reindex(was, is *rules.Set, now int64) {
	for i := range s.used {
		e := s.at(i)
		if e.rule < 0 {
			continue
		}
		old := was.Rules()[e.rule]
		r := is.Find(old.ID)
		if r == nil || !sameGrid(old.Limit, r.Limit) {
			e.rule = -1
			continue
		}
		e.rule = int32(r.Index)
		quota.Of(r.Limit).Adopt(&e.cell, now)
		e.keepUntil(quota.Of(r.Limit).Expires(&e.cell))
	}
}

// sameGrid reports whether two limits share a key's counters.
func sameGrid(a, b *rules.Limit) bool {
	return a == b && a != nil || a != nil && b != nil && a.Grid() == b.Grid()
}
