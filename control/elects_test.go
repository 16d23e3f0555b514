package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// adds returns the daemon that the last entry of a leader lets vote, nil for
// none.
func (w *world) adds(l *machine) *machine {
	last, _ := l.node.raft.storage.Entries(l.last(), l.last()+1, 1<<20)
	if len(last) == 0 || last[0].GetType() != raftpb.EntryConfChange {
		return nil
	}
	c, v, err := decodeChange(last[0].GetData())
	if err != nil || c.GetType() != raftpb.ConfChangeAddNode {
		return nil
	}
	i := slices.IndexFunc(w.machines, func(m *machine) bool { return m.node.self.id() == v.Daemon })
	return w.machines[i]
}

// unelectable returns a world whose leader was lost when it had committed that
// a third daemon votes, and had sent that to the fourth one alone. The others
// have it from there: two of three voters of the record are live. But the only
// voter that has the entry in its log counts two voters, of which one is lost.
func unelectable(t *testing.T) (w *world, voter, learner, other *machine) {
	t.Helper()
	w = newWorld(t, 1, "a-0", "b-0")
	w.delay = tick
	for _, name := range []string{"a-0", "b-0", "a-1", "b-1"} {
		w.add(name[:1], name, true)
	}
	w.run(time.Second)
	if err := w.find("a-0").node.Init(even("a", "b"), true); err != nil {
		t.Fatal(err)
	}
	w.until("a third vote", 20*time.Second, func() bool {
		l := w.leader()
		if l == nil {
			return false
		}
		learner = w.adds(l)
		return learner != nil
	})
	l := w.leader()
	index := l.last()
	for _, m := range w.others(l) {
		switch {
		case m == learner:
		case m.node.raft != nil:
			voter = m
		default:
			other = m
		}
	}
	closed := map[[2]*machine]bool{{l, learner}: true}
	w.cut = func(from, to *machine) bool { return closed[[2]*machine{from, to}] }
	w.until("a copy of the entry", time.Second, func() bool { return voter.last() == index })
	closed[[2]*machine{l, voter}] = true
	w.until("committed", time.Second, func() bool { return other.node.record.Version.Index == index })
	w.crash(l)
	w.until("equal", time.Minute, w.equal)
	if live, of := other.node.liveVoters(), other.node.record.Voting(); live != 2 || of != 3 || learner.last() >= index {
		t.Fatalf("%d of %d voters are live, and the new one has entry %d: want 2 of 3, and one before %d", live, of, learner.last(), index)
	}
	return w, voter, learner, other
}

// A majority of the voters of the record is live, and cannot elect a leader.
// A daemon without a voter learns that from them, and so a recovery can begin
// at any of them.
func TestRecoverUnelectable(t *testing.T) {
	w, voter, learner, other := unelectable(t)
	if err := other.node.Recover(RecoverRequest{DryRun: true}); err == nil || !strings.Contains(err.Error(), "needs no recovery") {
		t.Errorf("%v: want a recovery refused while an election may be under way", err)
	}
	w.run(time.Minute)
	for _, m := range []*machine{voter, learner, other} {
		if s := m.node.Status(); s.Leader != (ID{}) || !s.Unelectable {
			t.Errorf("%s: leader %v, unelectable %v: want none, as voters miss the former leader", m.name, s.Leader, s.Unelectable)
		}
		if err := m.node.Recover(RecoverRequest{DryRun: true}); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
	if err := other.node.Recover(RecoverRequest{}); err != nil {
		t.Fatal(err)
	}
	w.until("three voters", time.Minute, func() bool {
		return w.equal() && w.leader() != nil && w.leader().node.Record().Voting() == fewVoters
	})
}

// A daemon without a voter that knows no leader relies on a voter that receives
// from a majority, if both have the same recovery.
func TestElectsAsVotersKnow(t *testing.T) {
	w := begin(t, "c-1")
	n := w.find("c-1").node
	w.until("messages of voters", time.Minute, func() bool {
		return !slices.ContainsFunc(n.peers, func(p *peer) bool { return !p.sender.Majority })
	})
	if n.notices.lost = true; n.raft != nil || !Elects(n) || n.Status().Unelectable {
		t.Error("voters that receive from a majority cannot elect a leader, as the daemon knows")
	}
	for _, p := range n.peers {
		p.version.Recovery.Number++
	}
	if Elects(n) {
		t.Error("the voters of another recovery elect a leader of this one")
	}
}
