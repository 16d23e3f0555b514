package control

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// others returns the daemons but one.
func (w *world) others(l *machine) []*machine {
	return slices.DeleteFunc(slices.Clone(w.machines), func(m *machine) bool { return m == l })
}

// A voter that stopped keeps its vote and its log when the journal is
// rewritten: a command that it acknowledged stays.
func TestStoppedVoterIsKept(t *testing.T) {
	w := begin(t)
	l := w.leader()
	x, b := w.others(l)[0], w.others(l)[1]
	w.cut = func(from, to *machine) bool { return from == b || to == b }
	if r := w.submit(l, Change{Note: &Note{Text: "acknowledged"}}); r.Err != nil {
		t.Fatal(r.Err)
	}
	w.flights = nil
	w.crash(l)
	x.node.abstain("a test")
	w.run(100 * time.Millisecond)
	x.disk = x.node.Snapshot()
	w.crash(x)
	w.cut = func(_, _ *machine) bool { return false }
	w.start(x)
	if r := w.submit(b, Change{Note: &Note{Text: "other"}}); r.Err != nil {
		t.Fatal(r.Err)
	}
	if !slices.ContainsFunc(b.node.Record().History, func(c Command) bool { return c.Text == "acknowledged" }) {
		t.Error("a command that was done is not in the record")
	}
}

// A voter that stops during a write keeps what it wrote when the journal is
// rewritten later: it acknowledges that after the write.
func TestStoppedVoterKeepsItsWrite(t *testing.T) {
	w := begin(t)
	l := w.leader()
	x := w.others(l)[0]
	if _, err := l.node.Submit(Request{Author: "test", Change: Change{Note: &Note{Text: "written"}}}); err != nil {
		t.Fatal(err)
	}
	w.until("writes", time.Second, func() bool { return x.node.raft.busy && x.writing != nil })
	v := x.node.raft
	before, _ := v.storage.LastIndex()
	x.node.abstain("a test")
	w.run(time.Second)
	if is, _ := v.storage.LastIndex(); is <= before {
		t.Errorf("the journal would be rewritten up to entry %d, as before the write", is)
	}
}

// So much waits for a failing disk that it is replaced by the state. A crash
// while that is written leaves any part of it, and the daemon starts.
func TestFailingDiskIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some thousand entries")
	}
	w := newWorld(t, 1, "a-0", "b-0", "c-0")
	for _, name := range w.founders {
		w.add(name[:1], name, true)
	}
	w.run(time.Second)
	b := w.find("b-0")
	b.failing = true
	if err := w.find("a-0").node.Init(even("a", "b", "c"), true); err != nil {
		t.Fatal(err)
	}
	w.until("begun", 20*time.Second, func() bool { return w.leader() != nil && b.node.Record() != nil })
	held := func() int { return len(b.node.disk.next.items) }
	for before := 0; held() >= before; w.run(3 * time.Second) {
		before = held()
		for i := range 30 {
			_, _ = w.leader().node.Submit(Request{Author: "test", Change: Change{Note: &Note{fmt.Sprint(i)}}})
		}
		if before > maxHeld {
			t.Fatalf("%d items wait", before)
		}
	}
	b.failing = false
	w.until("written", 10*time.Second, func() bool { return b.writing != nil })
	for n := range len(b.writing) + 1 {
		start, err := Recover(append(slices.Clone(b.disk), b.writing[:n]...), Config{})
		if err == nil {
			_, err = open(w.config(b), start)
		}
		if err != nil {
			t.Errorf("with %d of %d items, the last of them %.60s: %v", n, len(b.writing), b.writing[max(0, n-1)], err)
		}
	}
}

// A recovery that is asked for twice, while the disk fails, begins once.
func TestRecoverTwice(t *testing.T) {
	w := begin(t, "c-1")
	m := w.find("a-0")
	w.crash(w.find("b-0"))
	w.crash(w.find("c-0"))
	w.run(time.Minute)
	m.failing = true
	w.run(time.Second)
	if err := m.node.Recover(RecoverRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := m.node.Recover(RecoverRequest{}); err == nil {
		t.Error("a recovery begins while another one is being stored")
	}
	w.run(3 * time.Second)
	m.failing = false
	w.until("recovered", 10*time.Second, func() bool { return w.find("c-1").node.Record().Version.Recovery.Number > 0 })
	was := w.find("c-1").node.Record().Version.Recovery
	w.crash(m)
	w.start(m)
	w.run(20 * time.Second)
	if is := m.node.Record().Version.Recovery; is != was {
		t.Errorf("recovery %v after a restart, %v before", is, was)
	}
}

// A recovery gives a daemon whose voter stopped a new one.
func TestRecoverStopped(t *testing.T) {
	w := begin(t)
	m := w.find("a-0")
	m.node.abstain("a test")
	w.crash(w.find("b-0"))
	w.crash(w.find("c-0"))
	w.run(time.Minute)
	if err := m.node.Recover(RecoverRequest{}); err != nil {
		t.Fatal(err)
	}
	w.until("a leader", time.Minute, func() bool { return w.leader() == m })
}

// Questions to a leader whose disk fails are not collected.
func TestQuestionsAreBounded(t *testing.T) {
	w := begin(t)
	l := w.leader()
	w.run(5 * time.Second)
	l.failing = true
	if _, err := l.node.Submit(Request{Change: Change{Note: &Note{Text: "x"}}}); err != nil {
		t.Fatal(err)
	}
	w.until("stalled", 10*time.Second, func() bool { return l.node.raft.stalled() })
	o := w.others(l)[0]
	for i := range 3 * maxAsks {
		w.hand(o, l, Message{Ask: Number(i + 1)})
	}
	l.failing = false
	sent := 0
	w.until("mended", 10*time.Second, func() bool {
		for _, f := range w.flights {
			if f.from == l && len(f.m.Raft) > 0 {
				sent++
			}
		}
		return l.node.disk.failing == nil
	})
	if sent > 4*maxAsks {
		t.Errorf("%d messages of raft after %d questions", sent, 3*maxAsks)
	}
}

// What waits for a disk that fails is done when the disk works, also what came
// while it failed.
func TestFailedStoreForgetsNothing(t *testing.T) {
	w := begin(t)
	n := w.find("a-0").node
	n.queue(stored{Self: &n.self})
	if r := n.Ready(n.at); len(r.Store) == 0 {
		t.Fatal("nothing to store")
	}
	done := false
	n.queue(stored{Self: &n.self})
	n.afterStore(func() { done = true })
	n.Failed(n.at, errors.New("no space"))
	n.at += retryStore
	if r := n.Ready(n.at); len(r.Store) == 0 {
		t.Fatal("nothing is stored again")
	}
	if n.Stored(n.at); !done {
		t.Error("what waited for the disk was not done")
	}
}

// A node that receives messages all the time runs its timers nevertheless.
func TestMessagesDoNotDelayTicks(t *testing.T) {
	w := begin(t)
	n := w.find("a-0").node
	n.Tick(n.at, n.wall)
	wake := n.Ready(n.at).Wake
	for range 10 {
		if is := n.Ready(n.at + n.cfg.Heartbeat/2).Wake; is != wake {
			t.Fatalf("the next tick is due at %v, and after more calls at %v", wake, is)
		}
	}
}

// A voter that stopped follows no record: whom it hears is no majority that a
// recovery would take the log from.
func TestStoppedVoterHearsNoMajority(t *testing.T) {
	w := begin(t)
	l := w.leader()
	x := w.others(l)[0]
	w.until("hears a majority", time.Second, func() bool { return x.node.sender().Majority })
	x.node.abstain("a test")
	if x.node.sender().Majority {
		t.Error("it reports a majority of the voters of a record that it does not follow")
	}
}
