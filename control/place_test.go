package control

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"
)

// begin returns a world with a cluster of three founders and more daemons.
func begin(t *testing.T, names ...string) *world {
	t.Helper()
	w := newWorld(t, 1, "a-0", "b-0", "c-0")
	for _, name := range append([]string{"a-0", "b-0", "c-0"}, names...) {
		w.add(name[:1], name, true)
	}
	w.run(time.Second)
	if err := w.find("a-0").node.Init(even("a", "b", "c"), true); err != nil {
		t.Fatal(err)
	}
	w.until("begun", 20*time.Second, func() bool { return w.leader() != nil && w.equal() })
	return w
}

// votes reports whether a daemon has a vote in the record of the leader.
func (w *world) votes(name string) bool {
	l, m := w.leader(), w.find(name)
	if l == nil || !m.up {
		return false
	}
	v := l.node.Record().VoterOf(m.node.ID())
	return v != nil && !v.Learner
}

// A learner that is up to date gets its vote, whenever the leader looks: raft
// forgets all activity once in an election timeout, and has none before the
// next answers.
func TestLearnerVotes(t *testing.T) {
	for offset := range 50 {
		t.Run(fmt.Sprint(time.Duration(offset)*tick), func(t *testing.T) {
			w := begin(t, "a-1", "b-1", "c-1")
			l := w.leader()
			l.node.due.place = w.now + time.Duration(offset)*tick
			w.until("five voters", 30*time.Second, func() bool { return l.node.Record().Voting() == 5 })
		})
	}
}

// A learner that never stores anything gives way to another daemon of its
// region.
func TestLearnerFails(t *testing.T) {
	w := begin(t)
	w.crash(w.find("a-0"))
	first := w.add("a", "a-1", true)
	first.failing = true
	w.until("a learner", 30*time.Second, func() bool {
		return w.leader() != nil && w.leader().node.Record().VoterOf(first.node.ID()) != nil
	})
	w.add("a", "a-2", true)
	w.until("replaced", 2*time.Minute, func() bool { return w.votes("a-2") })
}

// Two voters are away, and only one of their regions has a daemon that can take
// a vote: it does.
func TestSecondVoterAway(t *testing.T) {
	w := begin(t, "a-1", "b-1")
	w.until("five voters", time.Minute, func() bool { return w.leader().node.Record().Voting() == 5 && w.equal() })
	r := w.leader().node.Record()
	var away []string // in the order of the record
	for _, v := range r.Voters {
		for _, m := range w.machines {
			if m.node.ID() == v.Daemon && m.region != "c" && !slices.ContainsFunc(away, func(o string) bool { return o[:1] == m.region }) {
				away = append(away, m.name)
			}
		}
	}
	for _, name := range away {
		w.crash(w.find(name))
	}
	w.add(away[1][:1], away[1][:1]+"-5", true) // the region of the second one
	w.add("c", "c-5", true)                    // with it, five can vote
	w.until("replaced", 2*time.Minute, func() bool { return w.votes(away[1][:1] + "-5") })
}

// Where there are three regions, no region has a majority of the votes for
// long.
func TestNoRegionDecides(t *testing.T) {
	w := begin(t, "a-1", "b-1")
	w.until("five voters", time.Minute, func() bool { return w.leader().node.Record().Voting() == 5 })
	w.crash(w.find("c-0"))
	w.crash(w.find("b-1"))
	w.run(time.Minute)
	w.start(w.find("c-0"))
	w.run(time.Minute)
	votes := map[string]int{}
	for _, v := range w.leader().node.Record().Voters {
		votes[v.Region]++
	}
	for region, n := range votes {
		if 2*n > w.leader().node.Record().Voting() {
			t.Errorf("region %s has %d of %d votes", region, n, w.leader().node.Record().Voting())
		}
	}
}

// A daemon that follows another recovery gets no vote.
func TestOtherRecoveryVotes(t *testing.T) {
	w := begin(t)
	a, b := w.find("a-0"), w.find("b-0")
	w.crash(w.find("c-0"))
	w.add("a", "a-1", true) // with b-0, three could vote
	w.cut = func(from, to *machine) bool { return from != to }
	w.run(30 * time.Second)
	for _, m := range []*machine{a, b} {
		if err := m.node.Recover(RecoverRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	w.cut = func(_, _ *machine) bool { return false }
	w.run(time.Minute)
	if a.node.Record().VoterOf(b.node.ID()) != nil {
		t.Error("a daemon that follows another recovery is a voter")
	}
}

// Five durable daemons of three regions, three of them in one: no region may
// have three votes, and four votes are no better than three.
func TestOddVoters(t *testing.T) {
	w := begin(t, "b-1", "b-2")
	w.run(time.Minute)
	if r := w.leader().node.Record(); r.Voting()%2 == 0 || len(r.Voters) != r.Voting() {
		t.Errorf("%d votes", r.Voting())
	}
}

// From three to five voters: of four, one region has two, and without it there
// is no majority. So the fifth votes as soon as the fourth does.
func TestFourVoters(t *testing.T) {
	w := begin(t, "a-1", "b-1", "c-1")
	four := time.Duration(0)
	w.until("five voters", time.Minute, func() bool {
		if w.leader().node.Record().Voting() == 4 {
			four += tick
		}
		return w.leader().node.Record().Voting() == 5
	})
	if most := w.find("a-0").node.cfg.Retry / 4; four > most {
		t.Errorf("four voters for %v, want at most %v", four, most)
	}
}

// A voter whose record diverged becomes the leader: its record is now the one
// that others take, and no other one replaces it.
func TestDivergedLeader(t *testing.T) {
	w := begin(t)
	l := w.leader()
	m := w.machines[slices.IndexFunc(w.machines, func(m *machine) bool { return m != l })]
	other := w.machines[slices.IndexFunc(w.machines, func(o *machine) bool { return o != m && o != l })]
	r, err := DecodeRecord(m.node.Record().Encode(), Format)
	if err != nil {
		t.Fatal(err)
	}
	r.Regions[0].Horizon++
	m.node.record = r
	for _, o := range w.machines {
		o.corrupt = true
	}
	w.until("diverged", 10*time.Second, func() bool { return m.node.diverged })
	w.crash(l)
	w.until("a leader", time.Minute, func() bool {
		if !other.node.Leads() {
			other.node.raft.due = w.now + time.Second
		}
		return m.node.Leads()
	})
	w.run(20 * time.Second)
	if m.node.diverged {
		t.Error("the record of the leader diverges from that of the leader")
	}
	w.start(l)
	w.submit(m, Change{Note: &Note{Text: "two"}})
	w.submit(m, Change{Note: &Note{Text: "three"}})
	w.until("equal", 20*time.Second, w.equal)
}

// In a split, a command is done in the recovery of the daemon that submitted
// it.
func TestOtherRecoveryCommands(t *testing.T) {
	w := begin(t, "a-1")
	a, b := w.find("a-0"), w.find("b-0")
	w.crash(w.find("c-0"))
	w.cut = func(from, to *machine) bool { return from.region != to.region }
	w.run(30 * time.Second)
	for _, m := range []*machine{a, b} {
		if err := m.node.Recover(RecoverRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	w.run(10 * time.Second)
	w.cut = func(_, _ *machine) bool { return false }
	w.run(10 * time.Second)
	for i := range 3 {
		w.until("a message of b-0", 30*time.Second, func() bool { return w.find("a-1").node.peer(b.address).heardAt == w.now })
		if r := w.submit(w.find("a-1"), Change{Note: &Note{Text: fmt.Sprint(i)}}); r.Err != nil {
			t.Error(r.Err)
		}
	}
	for _, c := range b.node.Record().History {
		if c.Author == "test" {
			t.Errorf("note %s is done in the other recovery", c.Text)
		}
	}
}

// A journal that is full is replaced by a snapshot and the items to store, as
// replica.ControlLog does. The voter that these items belong to may have ended
// meanwhile.
func TestSnapshotBeforeItems(t *testing.T) {
	w := begin(t)
	l := w.leader()
	m := w.machines[slices.IndexFunc(w.machines, func(m *machine) bool { return m != l })]
	if _, err := l.node.Submit(Request{Change: Change{Note: &Note{Text: "note"}}}); err != nil {
		t.Fatal(err)
	}
	w.until("a write of the log", 20*time.Second, func() bool {
		return slices.ContainsFunc(m.writing, func(item []byte) bool { return bytes.Contains(item, []byte(`"append"`)) })
	})
	m.node.runs.giveUp("a test")
	if _, err := Recover(append(m.node.Snapshot(), m.writing...), Config{}); err != nil {
		t.Error(err)
	}
}

// A cluster of one region gets two more regions: their daemons vote, and the
// first region loses its majority.
func TestNewRegionsVote(t *testing.T) {
	for daemons := range 3 {
		t.Run(fmt.Sprint(daemons+1), func(t *testing.T) {
			w := newWorld(t, 1, "a-0", "a-1", "a-2")
			for _, name := range w.founders {
				w.add("a", name, true)
			}
			w.run(time.Second)
			if err := w.find("a-0").node.Init(even("a"), true); err != nil {
				t.Fatal(err)
			}
			w.until("begun", 20*time.Second, func() bool { return w.leader() != nil && w.equal() })
			for _, region := range []string{"b", "c"} {
				for i := range daemons + 1 {
					w.add(region, fmt.Sprint(region, "-", i), true)
				}
				w.run(time.Second)
				if r := w.submit(w.leader(), Change{Region: &RegionChange{Op: AddRegion, Name: region, Weight: 300_000}}); r.Err != nil {
					t.Fatal(r.Err)
				}
			}
			w.run(2 * time.Minute)
			w.until("a leader", 20*time.Second, func() bool { return w.leader() != nil })
			votes, r := map[string]int{}, w.leader().node.Record()
			for _, v := range r.Voters {
				votes[v.Region]++
			}
			if r.Voting()%2 == 0 || len(votes) < 3 || slices.ContainsFunc([]string{"a", "b", "c"}, func(g string) bool { return 2*votes[g] > r.Voting() }) {
				t.Errorf("votes by region: %v", votes)
			}
		})
	}
}

// A region that was removed and added again with empty disks gets its vote
// back, long before a voter that is away is replaced.
func TestVoterOfFormerGeneration(t *testing.T) {
	w := begin(t)
	w.replaceAfter = time.Hour
	for _, m := range w.machines { // with the new setting
		w.crash(m)
		w.start(m)
	}
	w.until("a leader", 20*time.Second, func() bool { return w.leader() != nil && w.equal() })
	gone := w.others(w.leader())[0]
	former := gone.node.ID()
	w.crash(gone)
	w.run(time.Minute + time.Second)
	change := func(c RegionChange) {
		t.Helper()
		if r := w.submit(w.leader(), Change{Region: &c}); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	change(RegionChange{Op: RemoveRegion, Name: gone.region, Stopped: true})
	gone.disk = nil
	w.start(gone)
	w.run(time.Second)
	change(RegionChange{Op: AddRegion, Name: gone.region, Weight: 200_000})
	w.until("another voter", 30*time.Second, func() bool {
		r := w.leader().node.Record()
		return r.VoterOf(former) == nil && w.votes(gone.name) && r.Voting() == 3
	})
}

// Without a majority no voter has a leader soon, and none has it again from
// another one that is as wrong.
func TestLostLeaderIsForgotten(t *testing.T) {
	w := begin(t, "a-1", "b-1", "c-1")
	w.until("five voters", 30*time.Second, func() bool { return w.leader().node.Record().Voting() == 5 && w.equal() })
	l := w.leader()
	lost := 0
	for _, m := range w.machines {
		if m != l && lost < 2 && w.votes(m.name) {
			w.crash(m)
			lost++
		}
	}
	w.crash(l)
	w.until("no leader", 20*time.Second, func() bool {
		return !slices.ContainsFunc(w.machines, func(m *machine) bool { return m.up && m.node.Status().Leader != ID{} })
	})
}
