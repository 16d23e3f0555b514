package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// witnesses returns a world with a cluster of the regions a and b, and
// witnesses, of region w unless their names begin with another letter.
func witnesses(t *testing.T, founders, others []string) *world {
	t.Helper()
	w := newWorld(t, 1, founders...)
	w.layouts = true
	for _, name := range slices.Concat(founders, others) {
		m := &machine{name: name, region: name[:1], durable: true, witness: name[0] == 'w'}
		w.machines = append(w.machines, m)
		w.start(m)
	}
	w.run(time.Second)
	if err := w.find(founders[0]).node.Init(even("a", "b"), true); err != nil {
		t.Fatal(err)
	}
	w.until("begun", 20*time.Second, func() bool { return w.leader() != nil && w.equal() })
	return w
}

// voters returns how many votes each region has, as the leader knows.
func (w *world) voters() string {
	l := w.leader()
	if l == nil {
		return ""
	}
	votes := map[string]int{}
	for _, v := range l.node.Record().Voters {
		if !v.Learner {
			votes[v.Region]++
		}
	}
	return fmt.Sprint(votes)
}

// untilVotes waits until the regions have numbers of votes.
func (w *world) untilVotes(want string) {
	w.t.Helper()
	w.until("votes "+want, 3*time.Minute, func() bool { return w.voters() == want && w.equal() })
}

// crashAll ends all daemons of a region.
func (w *world) crashAll(region string) {
	for _, m := range w.machines {
		if m.region == region {
			w.crash(m)
		}
	}
}

// Whichever of two regions is lost, a majority is left with the witness: the
// region is removed, and nothing waits for the witness to hold anything.
func TestWitness(t *testing.T) {
	for _, lost := range []string{"a", "b"} {
		t.Run(lost, func(t *testing.T) {
			w := witnesses(t, []string{"a-0", "b-0", "w-0"}, []string{"a-1", "b-1"})
			r := w.leader().node.Record()
			if len(r.Regions) != 2 || len(r.Genesis) != 2 || !r.VoterOf(w.find("w-0").node.ID()).Witness {
				t.Fatalf("regions %+v, voters %+v: want two, and a witness among the voters", r.Regions, r.Voters)
			}
			w.untilVotes("map[a:2 b:2 w:1]")
			w.untilVoters("a: a-0 a-1; b: b-0 b-1")
			w.crashAll(lost)
			w.run(time.Minute + 5*time.Second)
			w.until("a leader", time.Minute, func() bool { return w.leader() != nil })
			l := w.leader()
			if res := w.submit(l, Change{Region: &RegionChange{Op: RemoveRegion, Name: lost, Stopped: true}}); res.Err != nil {
				t.Fatal(res.Err)
			}
			if r := l.node.Record(); len(r.Regions) != 1 || r.Regions[0].Weight != Whole {
				t.Errorf("regions %+v: want one", r.Regions)
			}
		})
	}
}

// A witness that joins later takes a vote, so that no region has a majority of
// them. When it is lost, its vote stays until an operator removes its id.
func TestWitnessJoins(t *testing.T) {
	w := witnesses(t, []string{"a-0", "b-0"}, []string{"a-1", "b-1", "b-2"})
	w.until("three votes", time.Minute, func() bool { return w.leader() != nil && w.leader().node.Record().Voting() == 3 })
	m := &machine{name: "w-0", region: "w", durable: true, witness: true}
	w.machines = append(w.machines, m)
	w.start(m)
	w.untilVotes("map[a:2 b:2 w:1]")
	id := m.node.ID()
	w.crash(m)
	w.run(time.Minute + 5*time.Second)
	if w.voters() != "map[a:2 b:2 w:1]" && w.voters() != "map[a:2 b:1]" && w.voters() != "map[a:1 b:2]" {
		t.Errorf("votes %s: want those of the witness, or three without it", w.voters())
	}
	l := w.leader()
	if res := w.submit(l, Change{Dead: &DeadID{ID: id, Name: "w-0", Stopped: true}}); res.Err != nil {
		t.Fatal(res.Err)
	}
	w.until("three votes", time.Minute, func() bool {
		return w.leader().node.Record().Voting() == 3 && w.leader().node.Record().VoterOf(id) == nil
	})
}

// A witness counts for nothing but votes: a region of witnesses cannot be
// added, and one in a region that has rights gets no vote.
func TestWitnessHasNoRights(t *testing.T) {
	w := witnesses(t, []string{"a-0", "b-0", "w-0"}, nil)
	l := w.leader()
	res := w.submit(l, Change{Region: &RegionChange{Op: AddRegion, Name: "w", Weight: 100_000}})
	if res.Err == nil || !strings.Contains(res.Err.Error(), "control.voter: only") {
		t.Errorf("%v: want a region of witnesses refused", res.Err)
	}
	m := &machine{name: "a-w", region: "a", durable: true, witness: true}
	w.machines = append(w.machines, m)
	w.start(m)
	w.run(time.Minute)
	if w.votes("a-w") || w.voters() != "map[a:1 b:1 w:1]" {
		t.Errorf("votes %s, the witness of region a %v: want none of it", w.voters(), w.votes("a-w"))
	}
}
