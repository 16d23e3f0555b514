package gossip

import (
	"testing"
	"time"
)

// TestSilentAggregator: the successor sums and informs while the aggregator of
// a key receives and sends nothing, and membership does not know that yet.
func TestSilentAggregator(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "a", "b")
	r.run(3 * time.Second)
	k := r.kept("a1", "a2")
	r.lost = func(from, to *member) bool { return from.name == "a1" || to.name == "a1" }
	r.run(2 * time.Second)
	for _, left := range []uint64{5, 0} {
		r.room = Room{Left: left, Limit: 10}
		r.of("a3").Add(r.mono(r.of("a3")), testKey(k), epoch, minute, 5, r.room)
		r.run(1500 * time.Millisecond)
	}
	for _, m := range r.members {
		if got := r.total(m.name, k); m.name != "a1" && got != 10 {
			t.Errorf("%s knows %d of 10 hits", m.name, got)
		}
	}
	r.lost = nil
	r.run(3 * time.Second)
	if got := r.total("a1", k); got != 10 || !r.of("a1").Aggregates(testKey(k)) || !r.of("a3").roles.regions[0].pair(testKey(k)).has(r.of("a1").self.ID) {
		t.Errorf("the aggregator knows %d of 10 hits when it is back", got)
	}
}

// TestNewDaemonIsInformed: a daemon that joins learns of exhausted limits of
// keys that it does not keep.
func TestNewDaemonIsInformed(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a")
	r.run(3 * time.Second)
	r.room = Room{Left: 0, Limit: 10}
	const keys = 50
	for k := range keys {
		r.of("a1").Add(r.mono(r.of("a1")), testKey(k), epoch, minute, 10, r.room)
	}
	r.run(time.Second)
	r.join("a")
	r.meet()
	r.run(3 * time.Second)
	for k := range keys {
		if got := r.total("a4", k); got != 10 {
			t.Errorf("a4 knows %d of 10 hits of key %d", got, k)
		}
	}
}

// TestRefundsRevokeAnExhaustedLimit: daemons that know of an exhausted limit
// from the aggregator alone learn of refunds too, whichever daemon makes them.
func TestRefundsRevokeAnExhaustedLimit(t *testing.T) {
	for _, by := range []string{"a1", "a2"} {
		r := newRig(Config{}, "a", "a", "a", "a")
		r.run(3 * time.Second)
		k := r.kept("a1", "a3")
		r.room = Room{Left: 0, Limit: 10}
		r.of(by).Add(r.mono(r.of(by)), testKey(k), epoch, minute, 10, r.room)
		r.run(time.Second)
		if got := r.total("a4", k); got != 10 {
			t.Fatalf("a4 knows %d of 10 hits of %s", got, by)
		}
		r.refund(by, k, 4)
		r.run(time.Second)
		if got := r.total("a4", k); got != 6 {
			t.Errorf("a4 knows %d hits after refunds of %s, want 6", got, by)
		}
	}
}
