package node

import (
	"testing"
	"time"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
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

// hit returns a hit of a key as nodes are asked for it.
func (w *strictWorld) hit(key string) Hit {
	w.t.Helper()
	c := &Call{Domain: "d", Descriptors: []rules.Descriptor{strictly(key, 1)}}
	if err := w.front.Resolve(c); err != nil {
		w.t.Fatal(err)
	}
	return c.Hits()[0]
}

// stranger returns a daemon that is not home of a key, and the home.
func (w *strictWorld) stranger(key string) (d, owner *strictDaemon) {
	w.t.Helper()
	h := w.hit(key)
	for _, o := range w.daemons {
		if at, _ := o.node.ownerOf(h.Key, h.Rule.ID, h.Limit.HomeInRegion()); at.Self {
			owner = o
		} else {
			d = o
		}
	}
	if d == nil || owner == nil {
		w.t.Fatalf("%s has no home among %d daemons, or nobody else", key, len(w.daemons))
	}
	return d, owner
}

// slowly asks a daemon for a key once in a while.
func (w *strictWorld) slowly(d *strictDaemon, key string, calls int, every time.Duration) {
	for range calls {
		w.ask(d, strictly(key, 1))
		w.pass(every)
	}
}

func TestMostCallsThatComeNowAndThenNeedNotWait(t *testing.T) {
	for _, tt := range []struct {
		key         string
		every       time.Duration
		least, most int // calls of 40 that wait
		why         string
	}{
		{"plenty", time.Second, 1, 3, "the first two, and none once there is stock"},
		{"plenty", 300 * time.Millisecond, 1, 3, "the same"},
		{"plenty", 11 * time.Second, 40, 40, "nobody asked in the last five seconds"},
		{"few", time.Second, 40, 40, "a sixty-fourth of 40 is none"},
		{"bucket", 300 * time.Millisecond, 40, 40, "its rights could not be given back"},
		{"log", 300 * time.Millisecond, 40, 40, "its rights would count until they end"},
		{"sliding", time.Second, 40, 40, "its rights would count in the next window too"},
	} {
		w := newStrictWorld(t, 1, prefetchRules, 3)
		d, owner := w.stranger(tt.key)
		w.slowly(d, tt.key, 40, tt.every)
		if n := owner.node.desk.counts.Granted; tt.least == 40 && n != 40 {
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

func TestWithoutPrefetchEachCallAsks(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, _ := w.stranger("plenty")
	d.node.cfg.Strict.Prefetch = 0
	w.slowly(d, "plenty", 20, time.Second)
	if w.waited != 20 {
		t.Errorf("%d of 20 calls waited", w.waited)
	}
}

func TestWhatGetsNoPrefetchIsAskedForOnce(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, _ := w.stranger("few")
	w.slowly(d, "few", 20, time.Second)
	if n := d.node.desk.counts.Requests; n != 20 {
		t.Errorf("20 calls were %d asks", n)
	}
}

// Rights end with their window: no more are kept than come in one.
func TestPrefetchOfAShortWindowIsSmall(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, _ := w.stranger("short")
	for range 30 {
		w.ask(d, strictly("short", 1))
		w.pass(330 * time.Millisecond)
		if n := w.keeps(d, "short"); n > 2 {
			t.Fatalf("%d rights are kept of a key that is asked for three times a window, want 2", n)
		}
	}
	if w.waited >= 30 {
		t.Error("there is no stock")
	}
}

func TestHoldersShareWhatIsKept(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	_, owner := w.stranger("some")
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

// The nearer the limit, the less is kept: what others may use is not denied to them.
func TestPrefetchLeavesTheLastRightsToWhoeverComes(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, owner := w.stranger("some")
	w.slowly(d, "some", 10, time.Second)
	kept := w.keeps(d, "some")
	if kept == 0 || kept > 3 {
		t.Errorf("%d rights of 200 are kept, want 1 to 3", kept)
	}
	for range 200 {
		w.ask(owner, strictly("some", 1))
		w.pass(10 * time.Millisecond)
	}
	if missed := 200 - w.allowed; missed < 0 || missed > 3 {
		t.Errorf("%d of 200 were allowed, want all but 3 at most", w.allowed)
	}
	w.check(1)
}

func TestPrefetchIsGivenBackWhenNobodyComesAnyMore(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, owner := w.stranger("plenty")
	w.slowly(d, "plenty", 10, time.Second)
	if w.keeps(d, "plenty") == 0 {
		t.Fatal("nothing is kept")
	}
	w.pass(3 * time.Second)
	if w.keeps(d, "plenty") == 0 {
		t.Error("given back though somebody may come")
	}
	w.pass(10 * time.Second)
	if n := w.keeps(d, "plenty"); n > 0 {
		t.Errorf("%d rights are still kept", n)
	}
	for _, led := range owner.node.desk.all {
		if led.bank == nil {
			continue
		}
		l := owner.node.rules.set.Find(led.id).Limit
		if left := led.bank.row.Left(l, quota.Of(l).Full(), w.at().Wall/int64(time.Millisecond)); left != 100_000-10 {
			t.Errorf("%d rights are left at home, want all but the 10 that were used", left)
		}
	}
}

// A hot key's batch goes back at once when its hits end, but for a stock.
func TestBatchOfAHotKeyShrinksToAPrefetch(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, _ := w.stranger("plenty")
	for range 1_000 {
		w.ask(d, strictly("plenty", 5))
		w.pass(time.Millisecond)
	}
	if n := w.keeps(d, "plenty"); n < 100 {
		t.Fatalf("%d rights are held of a hot key: no batch", n)
	}
	w.pass(time.Second)
	if n := w.keeps(d, "plenty"); n > 16 {
		t.Errorf("%d rights are kept, want 16 at most", n)
	}
}

// So does one of a key that is nearer its limit.
func TestBatchShrinksToAPartOfWhatIsLeft(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, _ := w.stranger("some")
	most := uint64(0)
	for range 15 {
		w.ask(d, strictly("some", 4))
		w.pass(10 * time.Millisecond)
		most = max(most, w.keeps(d, "some"))
	}
	w.pass(time.Second)
	if n := w.keeps(d, "some"); n > 2 || most <= 2 {
		t.Errorf("%d rights are kept of %d, with 140 left; want 2 at most of more", n, most)
	}
}

// lost is how many rights of a key are neither left at its home nor used.
func (w *strictWorld) lost(owner *strictDaemon, key string, used uint64) uint64 {
	h := w.hit(key)
	row := owner.node.ledgerAt(&h, false).bank.row
	return uint64(h.Limit.Requests) - used - row.Left(h.Limit, quota.Of(h.Limit).Full(), w.at().Wall/int64(time.Millisecond))
}

func TestAllHoldersTogetherKeepASmallPart(t *testing.T) {
	w := newStrictWorld(t, 1, `
domain: d
descriptors:
  - key: day
    rate_limit: {unit: day, requests_per_unit: 1100, consistency: strict}
`, 9)
	_, owner := w.stranger("day")
	for range 2 {
		for _, d := range w.daemons {
			if d != owner {
				w.ask(d, strictly("day", 9))
				w.pass(60 * time.Millisecond)
			}
		}
	}
	w.pass(time.Second)
	if n, most := w.lost(owner, "day", 16*9), uint64(1100-16*9)/64; n > most {
		t.Errorf("%d rights are kept, want %d at most", n, most)
	}
}

func TestRemainingSaysWhatIsLeftAtOwnerToo(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, _ := w.stranger("plenty")
	for i := range 12 {
		p := w.ask(d, strictly("plenty", 1))
		w.pass(time.Second)
		if got := p.c.Statuses[0].Remaining; got > 99_999-uint64(i) || got < 99_980 {
			t.Errorf("call %d: %d remain of 100,000", i, got)
		}
	}
}

func TestReturnThatIsLostIsSaidAgain(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, owner := w.stranger("plenty")
	w.slowly(d, "plenty", 41, 300*time.Millisecond)
	if w.keeps(d, "plenty") == 0 {
		t.Fatal("nothing is kept")
	}
	w.loss = 1
	w.pass(12 * time.Second)
	w.loss = 0
	w.pass(10 * time.Second)
	if n := w.lost(owner, "plenty", 41); n > 0 {
		t.Errorf("%d rights are lost", n)
	}
}

func TestPrefetchFollowsAKeyThatSlowsDown(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, _ := w.stranger("plenty")
	w.slowly(d, "plenty", 40, 300*time.Millisecond)
	was := w.keeps(d, "plenty")
	w.slowly(d, "plenty", 5, 4900*time.Millisecond)
	if n := w.keeps(d, "plenty"); n > 1 || was <= 3 {
		t.Errorf("%d rights are kept of %d, want 1 at most", n, was)
	}
}

func TestPrefetchOfCallsOfSeveralHits(t *testing.T) {
	for _, tt := range []struct {
		hits uint64
		most int // of 40 that wait
	}{{1, 3}, {2, 3}, {5, 3}, {16, 5}, {17, 40}} {
		w := newStrictWorld(t, 1, prefetchRules, 3)
		d, owner := w.stranger("plenty")
		kept := uint64(0)
		for range 40 {
			w.ask(d, strictly("plenty", tt.hits))
			w.pass(700 * time.Millisecond)
			kept = max(kept, w.keeps(d, "plenty"))
		}
		if w.waited > tt.most || kept > 16 || tt.hits > 16 && kept > 0 {
			t.Errorf("calls of %d hits: %d of 40 waited, %d rights were kept", tt.hits, w.waited, kept)
		}
		if n := owner.node.desk.counts.Granted; tt.hits <= 16 && n > 45*tt.hits {
			t.Errorf("calls of %d hits: %d rights were granted for %d", tt.hits, n, 40*tt.hits)
		}
	}
}

func TestWhoLeavesKeepsNothing(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, owner := w.stranger("plenty")
	w.slowly(d, "plenty", 10, time.Second)
	d.node.Leave(w.at(d))
	w.drain(d)
	w.pass(100 * time.Millisecond)
	if n := w.lost(owner, "plenty", 10); n > 0 {
		t.Errorf("%d rights are lost", n)
	}
	w.slowly(d, "plenty", 10, time.Second)
	if n := w.keeps(d, "plenty"); n > 0 {
		t.Errorf("%d rights are kept by a daemon that leaves", n)
	}
}

// What a home granted that is none any more can be used here and nowhere else.
func TestPrefetchOutlivesItsOwner(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, owner := w.stranger("plenty")
	w.slowly(d, "plenty", 20, 300*time.Millisecond)
	was := w.keeps(d, "plenty")
	w.crash(owner)
	w.pass(30 * time.Second)
	if n := w.keeps(d, "plenty"); n != was || was == 0 {
		t.Errorf("%d rights are left of %d that the former home granted", n, was)
	}
}

// keeps returns how many rights to a key a daemon holds.
func (w *strictWorld) keeps(d *strictDaemon, key string) uint64 {
	h := w.hit(key)
	led := d.node.ledgerAt(&h, false)
	if led == nil {
		return 0
	}
	return led.credit.left(h.Limit, w.at(d).Wall/int64(time.Millisecond))
}
