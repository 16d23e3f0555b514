package control

import (
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
	if err := w.find("a-0").node.Init(even("a", "b", "c")); err != nil {
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
	w.until("five voters", time.Minute, func() bool { return w.leader().node.Record().Voting() == 5 })
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
