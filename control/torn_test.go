package control

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// TestTornWrites starts daemons with every prefix of what they have written. A
// crash leaves any prefix of a batch, so each of them must start.
func TestTornWrites(t *testing.T) {
	w := newWorld(t, 1, "a-0", "b-0", "c-0")
	for _, name := range []string{"a-0", "b-0", "c-0", "c-1"} {
		w.add(name[:1], name, true)
	}
	w.run(time.Second)
	if err := w.find("a-0").node.Init(even("a", "b", "c"), true); err != nil {
		t.Fatal(err)
	}
	w.until("begun", 20*time.Second, func() bool { return w.leader() != nil && w.equal() })
	for i := range 5 {
		w.submit(w.find("b-0"), Change{Note: &Note{Text: fmt.Sprint(i)}})
	}
	// c-1 takes the vote of c-0. Its log begins with a snapshot.
	w.crash(w.find("c-0"))
	w.until("a vote", time.Minute, func() bool { return w.find("c-1").node.Status().Votes })
	w.run(10 * time.Second)
	for _, m := range w.machines {
		for n := range m.disk {
			start, err := Recover(m.disk[:n], Config{})
			if err == nil {
				_, err = open(w.config(m), start)
			}
			if err != nil {
				t.Fatalf("%s with %d of %d items, the last of them %.100s: %v", m.name, n, len(m.disk), m.disk[n-1], err)
			}
		}
	}
}

// A journal that was rewritten may hold an entry of an earlier recovery behind
// the record of a later one.
func TestItemOfOtherRecovery(t *testing.T) {
	n := begin(t).find("a-0").node
	was := n.Record().Version
	other := stored{Log: Recovery{Number: 9, Random: 9}, Item: &Item{Index: was.Index + 1}}
	s, err := Recover(append(n.Snapshot(), other.encode()), Config{})
	if err != nil || s.record.Version != was {
		t.Errorf("version %v, %v: want %v", s.record.Version, err, was)
	}
}

// TestTornFounding starts a cluster of one daemon with every prefix of what it
// has written: it leads again.
func TestTornFounding(t *testing.T) {
	w := newWorld(t, 1, "a-0")
	m := w.add("a", "a-0", true)
	w.run(time.Second)
	if err := m.node.Init(even("a"), true); err != nil {
		t.Fatal(err)
	}
	w.until("begun", 20*time.Second, func() bool { return w.leader() != nil })
	w.run(time.Second)
	whole := m.disk
	for n := range whole {
		w := newWorld(t, uint64(n), "a-0")
		m := &machine{name: "a-0", region: "a", durable: true, disk: whole[:n:n]}
		w.machines = append(w.machines, m)
		w.start(m)
		w.run(5 * time.Second)
		_ = m.node.Init(even("a"), true)
		w.until(fmt.Sprintf("a leader with %d of %d items", n, len(whole)), 30*time.Second, func() bool { return w.leader() != nil })
	}
}

// TestTornRecovery starts a daemon that recovered the log with every prefix of
// its writes since then: it leads, if it has the recovery.
func TestTornRecovery(t *testing.T) {
	w := begin(t)
	m := w.find("a-0")
	w.crash(w.find("b-0"))
	w.crash(w.find("c-0"))
	w.run(time.Minute)
	before := len(m.disk)
	if err := m.node.Recover(RecoverRequest{}); err != nil {
		t.Fatal(err)
	}
	w.until("a leader", time.Minute, func() bool { return w.leader() == m })
	w.run(time.Second)
	whole := m.disk
	for n := before; n <= len(whole); n++ {
		w := newWorld(t, uint64(n), "a-0", "b-0", "c-0")
		m := &machine{name: "a-0", region: "a", durable: true, disk: whole[:n:n]}
		w.machines = append(w.machines, m)
		w.start(m)
		w.run(time.Minute)
		if recovered := m.node.Record().Version.Recovery.Number > 0; recovered != m.node.Leads() {
			t.Errorf("with %d of %d items: recovered %t, leads %t", n-before, len(whole)-before, recovered, m.node.Leads())
		}
	}
}

// TestHeartbeatWhileStoring sends a voter a heartbeat that names an entry which
// the voter never had, while it stores others. raft panics then. The voter
// gives its id up.
func TestHeartbeatWhileStoring(t *testing.T) {
	w := begin(t)
	l := w.leader()
	m := w.machines[slices.IndexFunc(w.machines, func(m *machine) bool { return m != l })]
	if _, err := l.node.Submit(Request{Change: Change{Note: &Note{Text: "note"}}}); err != nil {
		t.Fatal(err)
	}
	w.until("storing", 20*time.Second, func() bool { return m.node.raft.busy })
	kind, from, to, commit := raftpb.MsgHeartbeat, uint64(l.node.raft.id), uint64(m.node.raft.id), uint64(1000)
	term := l.node.raft.raw.BasicStatus().GetTerm()
	id, r := m.node.ID(), l.node.Record()
	if err := m.node.Receive(w.now, w.now.Milliseconds(), &Message{
		From: l.address, To: m.address, Statement: Statement{Sender: l.node.sender(), Cluster: r.Cluster.ID, Version: r.Version}, Log: r.Version.Recovery,
		Raft: []*raftpb.Message{{Type: &kind, From: &from, To: &to, Term: &term, Commit: &commit}},
	}); err != nil {
		t.Fatal(err)
	}
	if m.node.ID() == id {
		t.Error("it goes on under the same id")
	}
	w.until("equal", 20*time.Second, w.equal)
}
