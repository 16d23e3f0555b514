package control

import (
	"testing"
	"time"
)

// twoFounders returns two of three founders, and a function that hands a-0 a
// step of b-0.
func twoFounders(t *testing.T) (w *world, a *machine, step func(s FoundingStep, round uint64)) {
	w = newWorld(t, 1, "a-0", "b-0", "c-0")
	a, b := w.add("a", "a-0", true), w.add("b", "b-0", true)
	w.run(time.Second)
	value := &Founding{Cluster: 1, Regions: even("a", "b"), Founders: []Founder{
		{Name: "a-0", Region: "a", Daemon: a.node.ID(), Raft: 1}, {Name: "b-0", Region: "b", Daemon: b.node.ID(), Raft: 2},
	}}
	value.Regions[0].Founders, value.Regions[1].Founders = []ID{a.node.ID()}, []ID{b.node.ID()}
	return w, a, func(s FoundingStep, round uint64) {
		w.hand(b, a, Message{Founding: &FoundingMessage{
			Founders: a.node.cfg.Founders, Step: s, Ballot: Ballot{Round: round, Proposer: b.node.ID()}, Value: value,
		}})
	}
}

// A founder that promised a ballot accepts no lower one: a majority may have
// accepted another founding under the higher ballot.
func TestPromiseHolds(t *testing.T) {
	_, a, step := twoFounders(t)
	step(stepPrepare, 5)
	step(stepAccept, 4)
	if is := a.node.founding.promise; is.Accepted != (Ballot{}) || is.Promised.Round != 5 {
		t.Errorf("round %d is accepted after a promise of round %d", is.Accepted.Round, is.Promised.Round)
	}
	step(stepAccept, 5)
	if is := a.node.founding.Accepted; is.Round != 5 {
		t.Errorf("round %d is accepted, want the promised one, 5", is.Round)
	}
}

// A founder that has accepted a founding and receives no answer does not send
// accepts under another ballot: others may have accepted a later founding.
func TestPromisesOfMajority(t *testing.T) {
	w, a, step := twoFounders(t)
	w.cut = func(_, _ *machine) bool { return true }
	step(stepAccept, 1)
	w.until("an attempt", time.Minute, func() bool { return a.node.founding.Promised.Round > 1 })
	for range 50 {
		w.run(100 * time.Millisecond)
		if a.node.founding.step == stepAccept {
			t.Fatal("it asks others to accept, with the promise of nobody else")
		}
	}
}
