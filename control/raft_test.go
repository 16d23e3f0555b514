package control

import (
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// last returns the last index of the log of a voter.
func (m *machine) last() uint64 {
	last, _ := m.node.raft.storage.LastIndex()
	return last
}

// A leader is lost before the others receive that the removal of a voter is
// committed. The removed voter has the longest log, and cannot lead: it rejects
// the candidate, which must learn from it that its vote is not needed.
func TestRemovedVoterHasLongestLog(t *testing.T) {
	w := newWorld(t, 1, "a-0", "b-0", "c-0", "d-0")
	w.delay = tick
	for _, name := range w.founders {
		w.add(name[:1], name, true)
	}
	w.run(time.Second)
	if err := w.find("a-0").node.Init(even("a", "b", "c", "d"), true); err != nil {
		t.Fatal(err)
	}
	// Of four voters, the leader removes one as soon as it leads.
	var l, removed *machine
	var index uint64
	w.until("a removal", 20*time.Second, func() bool {
		if l = w.leader(); l == nil {
			return false
		}
		index = l.last()
		all, _ := l.node.raft.storage.Entries(index, index+1, 1<<20)
		if len(all) == 0 || all[0].GetType() != raftpb.EntryConfChange {
			return false
		}
		c, v, err := decodeChange(all[0].GetData())
		i := slices.IndexFunc(w.machines, func(m *machine) bool { return err == nil && m.node.self.id() == v.Daemon })
		if i < 0 || c.GetType() != raftpb.ConfChangeRemoveNode {
			return false
		}
		removed = w.machines[i]
		return true
	})
	others := slices.DeleteFunc(w.others(l), func(m *machine) bool { return m == removed })
	has, lacks := others[0], others[1]
	closed := map[[2]*machine]bool{{l, lacks}: true, {removed, l}: true}
	w.cut = func(from, to *machine) bool { return closed[[2]*machine{from, to}] }
	w.until("a copy of the removal", time.Second, func() bool {
		return l.node.raft.raw.Status().Progress[uint64(has.node.raft.id)].Match == index && removed.last() == index
	})
	closed[[2]*machine{l, has}] = true
	if _, err := l.node.Submit(Request{Author: "test", Change: Change{Note: &Note{Text: "further"}}}); err != nil {
		t.Fatal(err)
	}
	w.until("a further entry", time.Second, func() bool { return removed.last() > index })
	closed[[2]*machine{removed, l}] = false
	w.until("a removed voter", time.Second, func() bool { return removed.node.record.VoterOf(removed.node.self.id()) == nil })
	if has.last() != index || lacks.last() >= index {
		t.Fatalf("the others have %d and %d entries: want %d and fewer", has.last(), lacks.last(), index)
	}
	w.crash(l)
	closed = nil
	w.until("a leader", 30*time.Second, func() bool { return w.leader() != nil })
	w.until("equal", 20*time.Second, w.equal)
}
