package gossip

import (
	"testing"

	"github.com/georld/rld/crdt"
)

// TestTransfersCountOnce: a transfer is given as it is, and a total that
// arrives again or late adds nothing.
func TestTransfersCountOnce(t *testing.T) {
	e := New(Config{}, Peer{ID: 1, Name: "a1", Region: "a"}, 0, 1)
	e.Peers(0, []Peer{{ID: 2, Name: "a2", Region: "a", Ready: true}})
	k := testKey(1)
	nonce := uint64(0)
	receive := func(total uint64) (n uint64) {
		t.Helper()
		nonce++
		changes, err := e.Receive(0, epoch, 250, 0, &Message{
			From: 2, To: 1, Shards: 1, Header: Header{Nonce: nonce},
			Part: Part{Cells: []Cell{{CellID: CellID{k, epoch, Given, 1}, CellMeta: minute, Value: crdt.PN{P: total}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range changes {
			n += changes[i].Transfer
		}
		return n
	}
	for i, tt := range []struct{ total, want uint64 }{{3, 3}, {7, 4}, {7, 0}, {5, 0}, {8, 1}} {
		if got := receive(tt.total); got != tt.want {
			t.Errorf("message %d, total %d: %d rights arrive, want %d", i, tt.total, got, tt.want)
		}
	}
	if !e.Give(0, k, epoch, minute, 2, 5) || !e.Give(0, k, epoch, minute, 2, 1) {
		t.Fatal("nothing was given")
	}
	if got := e.Rights(k, epoch); got != (Rights{Given: 6, Received: 8}) {
		t.Errorf("%+v, want 6 given and 8 received", got)
	}
}
