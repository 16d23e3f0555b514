package node

import (
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// Stats is the counters of a node, for metrics and auditors.
type Stats struct {
	LiveKeys, MaxKeys int
	OverflowKeys      int
	// Degraded counts answered descriptors by reason, indexed by Degraded.
	Degraded [degradedKinds]uint64
	// ClockOffset is the lead of the clock's physical reading over the wall
	// clock, in nanoseconds.
	ClockOffset int64
	// ClockOff reports that more than half of the peers have another time.
	ClockOff bool
	// Cells is the number of replicated cells held. Merged counts the cells of
	// peers that were merged since the start.
	Cells  int
	Merged uint64
	// Refusals counts denied descriptors, indexed by Gate.
	Refusals [gates]uint64
	TransferStats
	// ClockForward and ClockBackward count the steps of the wall clock.
	ClockForward, ClockBackward uint64
}

// Add adds the numbers of another shard. Of the clock, which all shards read,
// it keeps the greater ones.
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
	s.Cells += o.Cells
	s.Merged += o.Merged
	s.ClockOffset = max(s.ClockOffset, o.ClockOffset)
	s.ClockOff = s.ClockOff || o.ClockOff
	s.ClockForward = max(s.ClockForward, o.ClockForward)
	s.ClockBackward = max(s.ClockBackward, o.ClockBackward)
}

// Stats returns a snapshot.
func (n *Node) Stats() Stats {
	steps := n.clock.Steps()
	s := Stats{
		LiveKeys: n.keys.live.Len(), MaxKeys: n.keys.shares.Room(), OverflowKeys: n.keys.overflow.Len(),
		Degraded: n.stats.degraded, Refusals: n.stats.refusals, TransferStats: n.transfers,
		ClockOffset:  int64(n.clock.Offset()),
		ClockForward: uint64(steps.Forward), ClockBackward: uint64(steps.Backward),
	}
	if n.replica != nil {
		s.Cells, s.Merged = n.replica.engine.Size()
		s.ClockOff = n.replica.clocks.Outlier()
	}
	return s
}

// Tallies calls yield for each rule in force, in the order of the set, and once
// with a nil rule for overrides on descriptors that match no rule.
func (n *Node) Tallies(yield func(*rules.Rule, quota.Tally)) {
	all := n.rules.set.Rules()
	for i, r := range all {
		yield(r, tallyOf(n, i, int32(i)))
	}
	yield(nil, tallyOf(n, len(all), -1))
}

// tallyOf returns a tally with the keys of its rule.
func tallyOf(n *Node, i int, rule int32) quota.Tally {
	t := n.stats.tallies[i]
	t.Keys = uint64(n.keys.shares.Keys(rule))
	return t
}

// Offered calls yield for each rule in force with rights, by its shared name,
// with the hits that were asked for so far.
func (n *Node) Offered(yield func(rule, hits uint64)) {
	for i, r := range n.rules.set.Rules() {
		if r.Limit != nil && r.Limit.HasRights() {
			yield(r.Shared(), n.stats.tallies[i].Offered)
		}
	}
}

// outcomes counts the outcomes of hits.
type outcomes struct {
	tallies  []quota.Tally // one per rule, then one for overrides without a rule
	degraded [degradedKinds]uint64
	refusals [gates]uint64
	near     rules.PPM // Config.NearLimit
}

// setRules keeps the tallies of the rules that stay in force.
func (o *outcomes) setRules(was, is *rules.Set) {
	tallies := make([]quota.Tally, len(is.Rules())+1)
	for i, r := range was.Rules() {
		if to := is.Find(r.ID); to != nil {
			tallies[to.Index] = o.tallies[i]
		}
	}
	tallies[len(tallies)-1] = o.tallies[len(o.tallies)-1]
	o.tallies = tallies
}

// count counts a decided hit. rule is the index of its rule, -1 for none.
func (o *outcomes) count(h *Hit, st *Status, rule int32) {
	t := &o.tallies[len(o.tallies)-1]
	if rule >= 0 {
		t = &o.tallies[rule]
	}
	if st.Degraded != NotDegraded {
		o.degraded[st.Degraded]++
		if st.Degraded == KeysFull {
			t.KeysFull++
		}
	}
	if st.Over {
		o.refusals[st.Gate]++
	}
	t.Offer(h.N)
	if st.Gate == RightsGate {
		t.Ungranted(h.Limit, st.probed.room, h.N)
	}
	switch {
	case st.Over && h.Limit.Shadow && st.decided.passed:
		t.Shadow(h.N)
	case st.Over:
		t.Denied++
		t.Refused(h.N)
	case st.decided.passed:
		t.Allowed++
		t.Fitted(h.Limit, st.Remaining, h.N, o.near)
	default: // it fits, but another descriptor denied the call
		t.Denied++
		if st.decided.charge {
			t.Fitted(h.Limit, st.Remaining, h.N, o.near)
		}
	}
}
