package gossip

import (
	"testing"
	"time"
)

// A peer of another region that is far behind gets many messages. None walks
// more changes than it has room for, and together they send each change once.
func TestWalkEndsWithTheRoom(t *testing.T) {
	const changes, room = 1_000, 10
	e := New(Config{}, Peer{ID: 1, Name: "eu-0", Region: "eu"}, 0, 1)
	e.Peers(time.Second, []Peer{{ID: 3, Name: "us-0", Region: "us", Ready: true}})
	for i := range changes {
		e.state.touch(e.state.add(CellID{testKey(i), epoch, Given, 3}, CellMeta{WindowLength: 60_000}), 0)
	}
	s, seen := e.scope(e.links.find(3)), make(map[int32]bool)
	for first := e.state.changes.first; first != none; {
		e.remote.version = 0 // as each call of Messages does
		picked := e.remote.pick(&s, first, room, nil)
		if len(picked) != room || len(e.remote.cells) != room {
			t.Fatalf("picked %d of %d changes walked, want %d of as many", len(picked), len(e.remote.cells), room)
		}
		for _, p := range picked {
			seen[p.cell] = true
		}
		if again := e.remote.pick(&s, first, room+1, nil); len(seen) < changes && len(again) != room+1 {
			t.Fatalf("picked %d for a link with more room, want %d", len(again), room+1)
		}
		first = e.state.cells.at(picked[room-1].cell).change.next
	}
	if len(seen) != changes {
		t.Errorf("%d of %d changes were picked", len(seen), changes)
	}
}
