package gossip

import (
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// TestHints: a hint saves a search, and a wrong one does no harm: increments
// are those of their own key and window.
func TestHints(t *testing.T) {
	meta := CellMeta{WindowLength: 1_000}
	room := Room{Left: 100, Limit: 100}
	e := New(Config{}, Peer{ID: 1, Name: "a1", Region: "a"}, 0, 1)
	keys := []crdt.Key{1 << 20, 2 << 20, 3 << 20}
	hints := []int32{0, -1, 1 << 30}
	counted := map[CellID]uint64{}
	for step := range 60 {
		i, window := step%3, int64(step/20)*1_000
		hint := &hints[i]
		if step%7 == 0 {
			hint = &hints[(i+1)%3] // that of another key, or of none
		}
		if !AddAt(e, hint, time.Duration(step), keys[i], window, meta, uint64(step), room) {
			t.Fatal("no room")
		}
		id := e.ownID(keys[i], window)
		if counted[id] += uint64(step); *hint != e.state.find(id) {
			t.Fatalf("step %d: the hint is %d, want %d", step, *hint, e.state.find(id))
		}
		for id, n := range counted {
			if got := e.Own(id.Key, id.Window).P; got != n {
				t.Fatalf("step %d: %d hits of %v, want %d", step, got, id, n)
			}
		}
	}
	if at := hinted(&e.state, hints[0], 99); at != none {
		t.Errorf("a cell of another key was taken for one of key 99: %d", at)
	}
}

// TestOneVersionBetweenMessages: hits between two messages give a cell one
// version, and the next message has all of them. The time of the oldest hit
// stays.
func TestOneVersionBetweenMessages(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	r.run(time.Second)
	a1 := r.of("a1")
	sent := uint64(0)
	for round := range uint64(3) {
		before, first := a1.state.version, r.mono(a1)
		for range 5 {
			r.add("a1", 1, 1)
			r.now += time.Millisecond
		}
		i := a1.state.find(a1.ownID(testKey(1), epoch))
		if got := a1.state.version - before; got != 1 {
			t.Errorf("round %d: %d versions for five hits, want one", round, got)
		}
		if got := a1.state.unsents.at(i).since; got != first {
			t.Errorf("round %d: the oldest hit is from %v, want %v", round, got, first)
		}
		r.run(time.Second)
		if sent += 5; r.total("a2", 1) != sent {
			t.Errorf("round %d: a2 knows %d, want %d", round, r.total("a2", 1), sent)
		}
	}
}
