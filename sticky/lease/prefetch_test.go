package lease

import (
	"testing"
	"time"

	"github.com/georld/rld/quota"
)

const prefetchRules = `
domain: d
descriptors:
  - key: plenty
    rate_limit: {unit: hour, requests_per_unit: 100000, consistency: strict}
  - key: sliding
    rate_limit: {unit: minute, requests_per_unit: 100000, algorithm: sliding_window, consistency: strict}
  - key: short
    rate_limit: {unit: second, requests_per_unit: 100000, consistency: strict}
  - key: some
    rate_limit: {unit: minute, requests_per_unit: 200, consistency: strict}
  - key: few
    rate_limit: {unit: hour, requests_per_unit: 40, consistency: strict}
  - key: bucket
    rate_limit: {unit: second, requests_per_unit: 100000, algorithm: token_bucket, consistency: strict}
  - key: log
    rate_limit: {unit: hour, requests_per_unit: 10000, algorithm: sliding_log, consistency: strict}
`

// prefetchWorld returns a world of one region, and a lessee and the owner of a
// key.
func prefetchWorld(t *testing.T, key string) (w *world, lessee, owner *daemon) {
	w = newWorld(t, 1, prefetchRules, 3)
	lessee, owner, _ = w.roles(descriptor(key, "x", 1))
	return w, lessee, owner
}

// slowly sends calls for a key at an interval.
func (w *world) slowly(d *daemon, key string, calls int, every time.Duration) {
	for range calls {
		w.ask(d, descriptor(key, "x", 1))
		w.pass(every)
	}
}

// keeps returns how many rights to a key a daemon has.
func (w *world) keeps(d *daemon, key string) uint64 {
	h := w.hit(descriptor(key, "x", 1))
	e := d.table.find(h.Key, h.Rule, false)
	if e == nil {
		return 0
	}
	return e.lease.left(h.Rule.Limit, w.wall()+d.skew)
}

// unused returns how many rights to a key are neither left at its owner nor
// used.
func (w *world) unused(owner *daemon, key string, used uint64) uint64 {
	h := w.hit(descriptor(key, "x", 1))
	return uint64(h.Rule.Limit.Requests) - used - w.leftAt(owner, h)
}

// leftAt returns how many rights are left at the owner of a key.
func (w *world) leftAt(owner *daemon, h Hit) uint64 {
	a, l := owner.table.find(h.Key, h.Rule, false).owner.account, h.Rule.Limit
	return a.Left(l, quota.Of(l).Full(), w.wall())
}

// TestPrefetchSparesRoundTrips sends 40 calls at an interval, and counts those
// that wait for the owner.
func TestPrefetchSparesRoundTrips(t *testing.T) {
	for _, tt := range []struct {
		key         string
		every       time.Duration
		least, most int // calls of 40 that wait
		why         string
	}{
		{"plenty", time.Second, 1, 3, "the first two, and none once rights are prefetched"},
		{"plenty", 300 * time.Millisecond, 1, 3, "the same"},
		{"plenty", 11 * time.Second, 40, 40, "no call came in the last five seconds"},
		{"few", time.Second, 40, 40, "a sixty-fourth of 40 is none"},
		{"bucket", 300 * time.Millisecond, 40, 40, "its rights could not be returned"},
		{"log", 300 * time.Millisecond, 40, 40, "its rights would count until they end"},
		{"sliding", time.Second, 40, 40, "its rights would count in the next window too"},
	} {
		w, d, owner := prefetchWorld(t, tt.key)
		w.slowly(d, tt.key, 40, tt.every)
		if n := owner.table.stats.Granted; tt.least == 40 && n != 40 {
			t.Errorf("%s each %v: %d rights were granted for 40 hits", tt.key, tt.every, n)
		}
		if w.waited < tt.least || w.waited > tt.most {
			t.Errorf("%s each %v: %d of 40 calls waited, want %d to %d: %s", tt.key, tt.every, w.waited, tt.least, tt.most, tt.why)
		}
		if w.allowed != 40 {
			t.Errorf("%s each %v: %d of 40 calls were allowed", tt.key, tt.every, w.allowed)
		}
	}
}

func TestWithoutPrefetchEachCallWaits(t *testing.T) {
	w, d, _ := prefetchWorld(t, "plenty")
	d.table.cfg.Prefetch = 0
	w.slowly(d, "plenty", 20, time.Second)
	if w.waited != 20 {
		t.Errorf("%d of 20 calls waited", w.waited)
	}
}

// TestRequestsWithoutPrefetch checks that a key which gets no prefetched rights
// costs one request per call.
func TestRequestsWithoutPrefetch(t *testing.T) {
	w, d, _ := prefetchWorld(t, "few")
	w.slowly(d, "few", 20, time.Second)
	if n := d.table.stats.Requests; n != 20 {
		t.Errorf("20 calls cost %d requests", n)
	}
}

// TestPrefetchOfShortWindow checks that no more rights are kept than are used
// in one window, with which they end.
func TestPrefetchOfShortWindow(t *testing.T) {
	w, d, _ := prefetchWorld(t, "short")
	for range 30 {
		w.ask(d, descriptor("short", "x", 1))
		w.pass(330 * time.Millisecond)
		if n := w.keeps(d, "short"); n > 2 {
			t.Fatalf("%d rights are kept of a key with three calls per window, want 2", n)
		}
	}
	if w.waited >= 30 {
		t.Error("no rights are prefetched")
	}
}

func TestLesseesSharePrefetch(t *testing.T) {
	w, _, owner := prefetchWorld(t, "some")
	for range 10 {
		for _, d := range w.daemons {
			if d != owner {
				w.slowly(d, "some", 1, time.Second)
			}
		}
	}
	for _, d := range w.daemons {
		if n := w.keeps(d, "some"); n > 1 {
			t.Errorf("%d rights of 180 are kept by one of two, want 1", n)
		}
	}
}

// TestPrefetchNearTheLimit checks that fewer rights are kept the nearer the
// limit is, so that others are not denied for them.
func TestPrefetchNearTheLimit(t *testing.T) {
	w, d, owner := prefetchWorld(t, "some")
	w.slowly(d, "some", 10, time.Second)
	kept := w.keeps(d, "some")
	if kept == 0 || kept > 3 {
		t.Errorf("%d rights of 200 are kept, want 1 to 3", kept)
	}
	for range 200 {
		w.ask(owner, descriptor("some", "x", 1))
		w.pass(10 * time.Millisecond)
	}
	if missed := 200 - w.allowed; missed < 0 || missed > 3 {
		t.Errorf("%d of 200 were allowed, want all but 3 at most", w.allowed)
	}
	w.check(1)
}

// TestPrefetchIsReturned checks that prefetched rights go back when no calls
// come any more, but not at once.
func TestPrefetchIsReturned(t *testing.T) {
	w, d, owner := prefetchWorld(t, "plenty")
	w.slowly(d, "plenty", 10, time.Second)
	if w.keeps(d, "plenty") == 0 {
		t.Fatal("no rights are kept")
	}
	w.pass(3 * time.Second)
	if w.keeps(d, "plenty") == 0 {
		t.Error("returned though a call may come")
	}
	w.pass(10 * time.Second)
	if n := w.keeps(d, "plenty"); n > 0 {
		t.Errorf("%d rights are still kept", n)
	}
	if n := w.unused(owner, "plenty", 10); n > 0 {
		t.Errorf("%d rights are lost", n)
	}
}

// TestExtraRightsShrinkToPrefetch checks that the extra rights of a hot key go
// back at once when its hits end, except for prefetched ones.
func TestExtraRightsShrinkToPrefetch(t *testing.T) {
	w, d, _ := prefetchWorld(t, "plenty")
	for range 1_000 {
		w.ask(d, descriptor("plenty", "x", 5))
		w.pass(time.Millisecond)
	}
	if n := w.keeps(d, "plenty"); n < 100 {
		t.Fatalf("%d rights of a hot key are held: no extra ones", n)
	}
	w.pass(time.Second)
	if n := w.keeps(d, "plenty"); n > 16 {
		t.Errorf("%d rights are kept, want 16 at most", n)
	}
}

// TestExtraRightsShrinkNearTheLimit is the same for a key near its limit.
func TestExtraRightsShrinkNearTheLimit(t *testing.T) {
	w, d, _ := prefetchWorld(t, "some")
	most := uint64(0)
	for range 15 {
		w.ask(d, descriptor("some", "x", 4))
		w.pass(10 * time.Millisecond)
		most = max(most, w.keeps(d, "some"))
	}
	w.pass(time.Second)
	if n := w.keeps(d, "some"); n > 2 || most <= 2 {
		t.Errorf("%d rights are kept of %d, with 140 left; want 2 at most of more", n, most)
	}
}

func TestAllLesseesKeepASmallPart(t *testing.T) {
	w := newWorld(t, 1, `
domain: d
descriptors:
  - key: day
    rate_limit: {unit: day, requests_per_unit: 1100, consistency: strict}
`, 9)
	_, owner, _ := w.roles(descriptor("day", "x", 1))
	for range 2 {
		for _, d := range w.daemons {
			if d != owner {
				w.ask(d, descriptor("day", "x", 9))
				w.pass(60 * time.Millisecond)
			}
		}
	}
	w.pass(time.Second)
	if n, most := w.unused(owner, "day", 16*9), uint64(1100-16*9)/64; n > most {
		t.Errorf("%d rights are kept, want %d at most", n, most)
	}
}

// TestRemainingCountsTheOwnersRights checks that the report of a call admitted
// from prefetched rights includes those left at the owner.
func TestRemainingCountsTheOwnersRights(t *testing.T) {
	w, d, _ := prefetchWorld(t, "plenty")
	for i := range 12 {
		c := w.ask(d, descriptor("plenty", "x", 1))
		w.pass(time.Second)
		if got := c.reports[0].Remaining; got > 99_999-uint64(i) || got < 99_980 {
			t.Errorf("call %d: %d remain of 100,000", i, got)
		}
	}
}

func TestPrefetchFollowsASlowerRate(t *testing.T) {
	w, d, _ := prefetchWorld(t, "plenty")
	w.slowly(d, "plenty", 40, 300*time.Millisecond)
	before := w.keeps(d, "plenty")
	w.slowly(d, "plenty", 5, 4900*time.Millisecond)
	if n := w.keeps(d, "plenty"); n > 1 || before <= 3 {
		t.Errorf("%d rights are kept of %d, want 1 at most", n, before)
	}
}

func TestPrefetchOfCallsOfSeveralHits(t *testing.T) {
	for _, tt := range []struct {
		hits uint64
		most int // of 40 that wait
	}{{1, 3}, {2, 3}, {5, 3}, {16, 5}, {17, 40}} {
		w, d, owner := prefetchWorld(t, "plenty")
		kept := uint64(0)
		for range 40 {
			w.ask(d, descriptor("plenty", "x", tt.hits))
			w.pass(700 * time.Millisecond)
			kept = max(kept, w.keeps(d, "plenty"))
		}
		if w.waited > tt.most || kept > 16 || tt.hits > 16 && kept > 0 {
			t.Errorf("calls of %d hits: %d of 40 waited, %d rights were kept", tt.hits, w.waited, kept)
		}
		if n := owner.table.stats.Granted; tt.hits <= 16 && n > 45*tt.hits {
			t.Errorf("calls of %d hits: %d rights were granted for %d", tt.hits, n, 40*tt.hits)
		}
	}
}

// TestLeavingDaemonKeepsNothing checks that a daemon which is about to stop
// returns its rights, and prefetches no more.
func TestLeavingDaemonKeepsNothing(t *testing.T) {
	w, d, owner := prefetchWorld(t, "plenty")
	w.slowly(d, "plenty", 10, time.Second)
	d.table.Leave(w.clocks(d))
	w.drain(d)
	w.pass(100 * time.Millisecond)
	if n := w.unused(owner, "plenty", 10); n > 0 {
		t.Errorf("%d rights are lost", n)
	}
	w.slowly(d, "plenty", 10, time.Second)
	if n := w.keeps(d, "plenty"); n > 0 {
		t.Errorf("%d rights are kept by a leaving daemon", n)
	}
}

// TestPrefetchOutlivesItsOwner checks that rights of a former owner stay: they
// can be used here and nowhere else.
func TestPrefetchOutlivesItsOwner(t *testing.T) {
	w, d, owner := prefetchWorld(t, "plenty")
	w.slowly(d, "plenty", 20, 300*time.Millisecond)
	before := w.keeps(d, "plenty")
	w.crash(owner)
	w.pass(30 * time.Second)
	if n := w.keeps(d, "plenty"); n != before || before == 0 {
		t.Errorf("%d rights are left of %d that the former owner granted", n, before)
	}
}
