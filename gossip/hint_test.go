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
