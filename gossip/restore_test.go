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
