package lease

import (
	"testing"
	"time"

	"github.com/georld/rld/rules"
)

// strictRules has a limit per algorithm, and one with a regional reserve.
const strictRules = `
domain: d
descriptors:
  - key: fixed
    rate_limit: {unit: second, requests_per_unit: 7, consistency: strict}
  - key: sliding
    rate_limit: {unit: second, requests_per_unit: 9, algorithm: sliding_window, consistency: strict}
  - key: log
    rate_limit: {unit: second, requests_per_unit: 8, algorithm: sliding_log, consistency: strict}
  - key: bucket
    rate_limit: {unit: second, requests_per_unit: 10, burst: 6, algorithm: token_bucket, consistency: strict}
  - key: leaky
    rate_limit: {unit: second, requests_per_unit: 20, burst: 5, algorithm: leaky_bucket, consistency: strict}
  - key: share
    rate_limit: {unit: second, requests_per_unit: 10, consistency: strict, on_failure: {share: 50%}}
  - key: big
    rate_limit: {unit: second, requests_per_unit: 600, consistency: strict}
`

// TestLimitIsUsedUp sends calls to all daemons in turn, without faults: all are
// answered, and the limit is used up and not exceeded.
func TestLimitIsUsedUp(t *testing.T) {
	for _, key := range []string{"fixed", "sliding", "log", "bucket", "leaky", "share"} {
		w := newWorld(t, 1, strictRules, 3, 2)
		for i := range 40 {
			w.ask(w.daemons[i%len(w.daemons)], descriptor(key, "x", 1))
			w.pass(15 * time.Millisecond)
		}
		// In the 0.6 s the buckets refill 6 and 12, of which grants may hold
		// some.
		want := map[string]int{"fixed": 7, "sliding": 9, "log": 8, "bucket": 12, "leaky": 17, "share": 6}[key]
		if w.allowed < want*8/10 || w.allowed > want {
			t.Errorf("%s: %d allowed, want %d", key, w.allowed, want)
		}
		if w.failed > 0 {
			t.Errorf("%s: %d calls reached no owner", key, w.failed)
		}
		w.check(1)
	}
}

// TestHotKeyIsServedLocally checks that most calls on a hot key do not wait,
// and that its window is used up except for unused leases at its end.
func TestHotKeyIsServedLocally(t *testing.T) {
	w := newWorld(t, 2, strictRules, 3, 3)
	for range 900 {
		for range 2 {
			w.ask(w.daemons[w.rng.IntN(len(w.daemons))], descriptor("big", "x", 1))
		}
		w.pass(time.Millisecond)
	}
	if w.failed > 0 || w.allowed < 570 || w.allowed > 600 {
		t.Errorf("%d of 600 allowed, %d calls reached no owner", w.allowed, w.failed)
	}
	if calls := w.allowed + w.denied; w.waited > calls/5 {
		t.Errorf("%d of %d calls waited", w.waited, calls)
	}
	w.check(2)
}

// TestTakeoverCostsTheHeadroom crashes an owner: the cost is the headroom of
// its watermark, and a pause until the other daemons know.
func TestTakeoverCostsTheHeadroom(t *testing.T) {
	w := newWorld(t, 1, strictRules, 3, 3)
	ask := func() {
		for _, d := range w.daemons {
			if d.table != nil {
				w.ask(d, descriptor("big", "x", 1))
			}
		}
		w.pass(time.Millisecond)
	}
	for range 50 {
		ask()
	}
	owner, _ := w.ownerOf(w.daemons[0], descriptor("big", "x", 1))
	w.crash(owner)
	for range 600 {
		ask()
	}
	if w.allowed < 600-20-30 || w.failed > 20 {
		t.Errorf("%d of 600 allowed, %d calls reached no owner", w.allowed, w.failed)
	}
	w.check(4)
}

// TestHitlessDescriptorBesideHits sends a call with a descriptor that only asks
// for the state beside one that the lease covers.
func TestHitlessDescriptorBesideHits(t *testing.T) {
	w := newWorld(t, 1, dayRules, 3)
	x, owner, h := w.roles(descriptor("user", "bob", 1))
	w.ask(x, descriptor("user", "bob", 1))
	w.pass(20 * time.Millisecond)
	w.lease(x, owner, h, 8)
	for range 7 {
		w.pass(180 * time.Millisecond)
		w.ask(x, descriptor("user", "bob", 1))
	}
	w.ask(x, descriptor("user", "bob", 0), descriptor("user", "bob", 1))
	w.ask(x, descriptor("user", "bob", 1))
	w.pass(20 * time.Millisecond)
	for range 10 {
		w.ask(owner, descriptor("user", "bob", 1))
		w.pass(20 * time.Millisecond)
	}
	if sum := w.sum(h.Key); sum > 10 || sum < 8 {
		t.Errorf("%d hits admitted, want 8 to 10", sum)
	}
}

// lease has a lessee request so many rights without a call that needs them.
func (w *world) lease(lessee, owner *daemon, h Hit, n uint64) {
	e := lessee.table.find(h.Key, h.Rule, false)
	lessee.table.at = w.clocks(lessee)
	q := lessee.table.state(e, h.Rule.Limit, owner.id)
	lessee.table.requestID++
	q.ID, q.Want, q.Need = lessee.table.requestID, n, n
	w.forge(lessee, owner, requests(q))
}

// TestLeasedSince: no hits count of leases that an owner granted before.
func TestLeasedSince(t *testing.T) {
	const now = 1_000_000_000_250
	hour := int64(time.Hour / time.Millisecond)
	for a, want := range map[rules.Algorithm]int64{
		rules.FixedWindow:   now - now%hour,
		rules.SlidingWindow: now - now%hour - hour,
		rules.SlidingLog:    now - hour - hour/24 - 1_000,
		rules.TokenBucket:   now - hour/2 - 2*hour/32 - 1_000, // the bucket fills in half an hour
	} {
		l := &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 100, Burst: 50, Algorithm: a}
		if !l.Algorithm.Bucket() {
			l.Burst = 0
		}
		if is := leasedSince(l, now); is != want {
			t.Errorf("%v: %d ms ago, want %d", a, now-is, now-want)
		}
	}
}
