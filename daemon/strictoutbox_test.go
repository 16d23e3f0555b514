package daemon

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/wire"
)

// TestStrictOutboxIsConcurrent has many goroutines send to one daemon whose
// stream has no room now and then: nothing is lost or sent twice.
func TestStrictOutboxIsConcurrent(t *testing.T) {
	s := newStrict(replica.Config{}, newAcceptorLoop(slog.New(slog.DiscardHandler)), slog.New(slog.DiscardHandler))
	if _, err := NewEngine(EngineConfig{MaxKeys: 100, Node: testNode("us", "us-0"), strict: s}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen, frames, offered := map[uint64]int{}, uint64(0), 0
	send := func(_ crdt.Incarnation, frame []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		if offered++; offered%7 == 0 {
			return false
		}
		m, err := wire.DecodeStrict(frame)
		if err != nil {
			panic(err)
		}
		frames++
		for _, r := range m.Requests {
			seen[r.ID]++
		}
		return true
	}
	s.send.Store(&send)
	go s.run(t.Context())
	const senders, each = 16, 200
	herd(senders, func(i int) {
		for j := range each {
			r := sticky.LeaseRequest{ID: uint64(each*i + j + 1), Lessee: 9, Want: 1, Need: 1}
			replica.Route([]sticky.Message{{From: 9, To: 1, Number: 1, Requests: []sticky.LeaseRequest{r}}}, s)
			if j%10 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	})
	await.True(t, "all is sent", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) == senders*each
	})
	for id, n := range seen {
		if n != 1 {
			t.Fatalf("item %d was sent %d times", id, n)
		}
	}
	if got := s.StrictStats(); got.Frames != frames || got.DroppedItems != 0 {
		t.Errorf("%d frames are counted and %d items dropped, %d frames were sent", got.Frames, got.DroppedItems, frames)
	}
}
