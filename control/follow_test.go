package control

import (
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// hand gives a daemon a message of another one at once.
func (w *world) hand(from, to *machine, m Message) {
	w.t.Helper()
	m.From, m.To, m.Sender = from.address, to.address, from.node.sender()
	if err := to.node.Receive(w.now, w.now.Milliseconds(), &m); err != nil {
		w.t.Fatal(err)
	}
}

// Entries with a gap before them: a follower that applied them would lack a
// change for ever.
func TestEntriesWithGap(t *testing.T) {
	w := begin(t)
	l := w.leader()
	m := w.machines[slices.IndexFunc(w.machines, func(m *machine) bool { return m != l })]
	was := m.node.Record().Version
	at := Version{was.Recovery, was.Index + 2}
	w.hand(l, m, Message{
		Statement: Statement{Cluster: m.node.Record().Cluster.ID, Version: at}, Log: was.Recovery, Entries: []Item{{Index: at.Index}},
	})
	if is := m.node.Record().Version; is != was {
		t.Errorf("version %v follows %v", is, was)
	}
}

// The record of the recovery before, with a higher index than the present one.
// A daemon that adopted it would bring dropped entries back.
func TestFormerRecovery(t *testing.T) {
	w := begin(t)
	a, b := w.find("a-0"), w.find("b-0")
	w.crash(w.find("c-0"))
	w.cut = func(from, to *machine) bool { return from != to }
	w.run(30 * time.Second)
	former := *a.node.Record()
	if err := a.node.Recover(RecoverRequest{}); err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	was := a.node.Record().Version
	former.Version.Index = was.Index + 10
	for _, diverged := range []bool{false, true} {
		a.node.diverged = diverged
		w.hand(b, a, Message{Statement: Statement{Cluster: former.Cluster.ID, Version: former.Version}, Base: former.Encode()})
		if is := a.node.Record().Version; is.Recovery != was.Recovery {
			t.Errorf("version %v of recovery %d follows %v of recovery %d", is, is.Recovery.Number, was, was.Recovery.Number)
		}
	}
}

// A leader removes its own vote, and its next messages are lost. The other
// voter does not know that the removal is committed: it needs that vote.
func TestRemovedLeaderVotes(t *testing.T) {
	w := newWorld(t, 1, "a-0", "b-0")
	w.add("a", "a-0", true)
	w.add("b", "b-0", true)
	w.run(time.Second)
	if err := w.find("a-0").node.Init(even("a", "b"), true); err != nil {
		t.Fatal(err)
	}
	w.until("a leader", 20*time.Second, func() bool { return w.leader() != nil && w.equal() })
	l := w.leader()
	w.run(5 * time.Second)
	v := l.node.raft
	v.proposeVoter(raftpb.ConfChangeRemoveNode, *l.node.Record().Voter(v.id))
	w.until("removed", 10*time.Second, func() bool { return l.node.Record().Voter(v.id) == nil })
	w.flights = nil
	w.cut = func(from, _ *machine) bool { return from == l }
	w.run(200 * time.Millisecond)
	w.cut = func(_, _ *machine) bool { return false }
	w.until("another leader", time.Minute, func() bool { return w.leader() != nil && w.leader() != l })
	w.until("equal", 20*time.Second, w.equal)
	w.until("no vote left", 20*time.Second, func() bool { return !l.node.Status().Votes })
}
