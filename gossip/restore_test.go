package gossip

import (
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// TestRestoredCountsGoToTheirSource: a daemon that received restored counts and
// restores more of them also sends those to the peer that sent the first ones.
func TestRestoredCountsGoToTheirSource(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a")
	r.run(3 * time.Second)
	k := r.kept("a1", "a2")
	a1, a2 := r.of("a1"), r.of("a2")
	s := &a1.state
	put := func(kind Kind, of crdt.Incarnation, hits uint64) int32 {
		i := s.add(CellID{testKey(k), epoch, kind, of}, minute)
		s.set(s.cells.at(i), crdt.PN{P: hits})
		s.touch(i, r.mono(a1))
		return i
	}
	lost := put(Daemon, a1.restoration.lost, 2)
	s.cells.at(lost).source = a2.self.ID
	sent := put(RegionSum, a1.Engine.region, 3) // as another region sent it back
	if gain := a1.restoration.restoreOne(s, s.cells.at(sent).id(), r.mono(a1)); gain != 1 {
		t.Fatalf("%d hits are restored, want 1", gain)
	}
	r.run(time.Second)
	if got := r.total("a2", k); got != 3 {
		t.Errorf("a2 knows %d of 3 hits", got)
	}
}

// A daemon that does not aggregate a key lacks counts of it, and takes none of
// them for lost when another region that does not know all members yet sends it
// the sum.
func TestOnlyTheAggregatorRestores(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "b")
	r.run(3 * time.Second)
	k := r.kept("a1", "a2")
	r.add("a1", k, 10)
	r.run(3 * time.Second)
	a3, b1 := r.of("a3"), r.of("b1")
	cell := Cell{
		CellID:   CellID{Key: testKey(k), Window: epoch, Kind: RegionSum, Incarnation: RegionIncarnation("a")},
		CellMeta: CellMeta{WindowLength: 60_000, Carry: 60_000}, Value: crdt.PN{P: 10},
	}
	m := Message{
		From: b1.self.ID, To: a3.self.ID, Shards: 1,
		Header: Header{Ready: true, Nonce: nonceOf(r.mono(b1)), Rules: 7}, Part: Part{Cells: []Cell{cell}},
	}
	if err := r.hand(m); err != nil {
		t.Fatal(err)
	}
	r.run(10 * time.Second)
	if n := a3.count(CountsRestored); n > 0 || r.total("a1", k) != 10 {
		t.Errorf("%d restored, the aggregator knows %d of 10", n, r.total("a1", k))
	}
}

// TestNextAggregatorRestores: a sum that was sent back to another daemon than
// the aggregator of its key is restored when that daemon becomes it, although
// nobody sends the sum again.
func TestNextAggregatorRestores(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "b")
	r.run(3 * time.Second)
	k := r.kept("a1", "a2")
	a1, a2, b1 := r.of("a1"), r.of("a2"), r.of("b1")
	m := Message{
		From: b1.self.ID, To: a2.self.ID, Shards: 1, Header: Header{Ready: true, Nonce: nonceOf(r.mono(b1)), Rules: 7},
		Part: Part{Cells: []Cell{{
			CellID:   CellID{Key: testKey(k), Window: epoch, Kind: RegionSum, Incarnation: RegionIncarnation("a")},
			CellMeta: CellMeta{WindowLength: 60_000, Carry: 60_000}, Value: crdt.PN{P: 10},
		}}},
	}
	if err := r.hand(m); err != nil {
		t.Fatal(err)
	}
	r.run(10 * time.Second)
	if n := a2.count(CountsRestored); n > 0 {
		t.Fatalf("%d restored while a1 is the aggregator", n)
	}
	r.crash(a1)
	r.run(10 * time.Second)
	if n := a2.count(CountsRestored); n != 1 || r.total("a2", k) != 10 {
		t.Errorf("%d restored, a2 knows %d of 10 hits", n, r.total("a2", k))
	}
}
