package gossip

import (
	"math"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// TestLiesOfClocksAndVersions: a peer that is ahead of all time harms its own
// link alone. Views of others stay recent, its counts still merge, and its next
// run is believed.
func TestLiesOfClocksAndVersions(t *testing.T) {
	r := newRig(Config{}, "a", "a", "b", "b")
	r.run(2 * time.Second)
	a1, a2 := r.of("a1"), r.of("a2")
	const far = uint64(1) << 62
	lie := Message{
		From: a2.self.ID, To: a1.self.ID, Shards: 1,
		Header: Header{Nonce: far, Echo: far, Held: far},
		Part: Part{
			Hi: far, Complete: true, Answers: true, Ack: far, Unsent: math.MaxInt64, Own: math.MaxInt64,
			Staleness: []Staleness{{RegionIncarnation("b"), math.MaxInt64}},
		},
	}
	farther := lie
	farther.From = r.of("b1").self.ID
	if err := r.hand(lie); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		for k, name := range []string{"a2", "b2", "b1"} {
			r.add(name, k, 1)
		}
		r.run(500 * time.Millisecond)
		for l := range a1.Links(r.mono(a1)) {
			if l.Peer.ID != a2.self.ID && (l.Age < 0 || l.Age > 3*regionalHeartbeat || l.Silent) {
				t.Fatalf("step %d: the view of %s is %v old, silent %v", i, l.Peer.Name, l.Age, l.Silent)
			}
		}
		for _, lie := range []Message{lie, farther} {
			lie.Nonce = far + uint64(i)
			if err := r.hand(lie); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range a1.links.staleness(r.mono(a1), nil) { // a negative one cannot be sent
			if s.Age < 0 {
				t.Fatalf("step %d: the view of region %v is %v old", i, s.Region, s.Age)
			}
		}
	}
	for k := range 3 {
		if got := a1.Total(testKey(k), epoch); got != 20 {
			t.Errorf("key %d: %d hits known, want 20", k, got)
		}
	}
	r.restart(a2)
	r.restart(r.of("b1"))
	r.run(5 * time.Second)
	for l := range a1.Links(r.mono(a1)) {
		if l.Age < 0 || l.Age > 3*regionalHeartbeat || l.Silent {
			t.Errorf("after its restart the view of %s is %v old, silent %v", l.Peer.Name, l.Age, l.Silent)
		}
	}
}

// TestLiesInTheNameOfAnother: a peer of another region counts nothing in the
// name of a daemon of this region or of a third one.
func TestLiesInTheNameOfAnother(t *testing.T) {
	r := newRig(Config{}, "a", "a", "b")
	r.run(time.Second)
	a1 := r.of("a1")
	for _, c := range []struct {
		kind Kind
		of   crdt.Incarnation
	}{
		{Daemon, r.of("a2").self.ID},
		{Daemon, a1.self.ID},
		{Daemon, 77},
		{Transferred, r.of("a2").self.ID},
		{RegionSum, RegionIncarnation("c")},
		{Given, r.of("a2").self.ID},
		{Received, a1.self.ID},
	} {
		cell := Cell{CellID: CellID{testKey(1), epoch, c.kind, c.of}, CellMeta: minute, Value: crdt.PN{P: 1 << 40}}
		if err := receive(r, r.of("b1").self.ID, uint64(1)<<61, cell); err != nil {
			t.Fatal(err)
		}
		if got := a1.Total(testKey(1), epoch); got != 0 {
			t.Errorf("%v of %v from another region: %d hits count", c.kind, c.of, got)
		}
	}
	if n := a1.Rights(testKey(1), epoch); n != (Rights{}) {
		t.Errorf("rights %+v of forged cells", n)
	}
}
