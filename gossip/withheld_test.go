package gossip

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// TestSmallSumsAreWithheld: the sum of a region is sent to other regions once
// it grew by a part of what is left, if it grows fast, if a few hits are left,
// or when the window counts beyond its end.
func TestSmallSumsAreWithheld(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 60_000}
	for _, c := range []struct {
		name  string
		meta  CellMeta
		hits  []uint64 // one after the other, of a limit of 60
		known uint64   // in the other regions
	}{
		{"far from the limit", plain, []uint64{2, 2}, 0},
		{"fast", plain, []uint64{5}, 5},
		{"by a part of what is left", plain, []uint64{7}, 7},
		{"once more", plain, []uint64{7, 3}, 7},
		{"near the limit", plain, []uint64{7, 20, 3, 1}, 31},
		{"next to the limit", plain, []uint64{7, 20, 3, 25, 1}, 56},

		{"sliding", minute, []uint64{2}, 2},
	} {
		r := newRig(Config{}, "a", "b", "c")
		r.run(3 * time.Second)
		a1, used := r.of("a1"), uint64(0)
		for _, n := range c.hits {
			used += n
			a1.Add(r.mono(a1), testKey(1), epoch, c.meta, n, Room{60 - used, 60})
			r.run(time.Second)
		}
		for _, name := range []string{"b1", "c1"} {
			if got := r.total(name, 1); got != c.known {
				t.Errorf("%s: %s knows of %d hits of %d, want %d", c.name, name, got, used, c.known)
			}
		}
	}
}

// TestRegionsWithholdNothingAtTheLimit: regions of any number add hits in any
// order, and each sends its sum as soon as it may withhold no more of it. When
// they have reached the limit, all of them know all hits.
func TestRegionsWithholdNothingAtTheLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n, limit, key := 2+rng.Uint64N(11), 1+rng.Uint64N(300), crdt.Key(rng.Uint64())
		counted, sent := make([]uint64, n), make([]uint64, n)
		left := func(i uint64) uint64 {
			known := counted[i]
			for j := range n {
				if j != i {
					known += sent[j]
				}
			}
			return limit - known
		}
		for range limit {
			counted[rng.Uint64N(n)]++
			for again := true; again; {
				again = false
				for i := range n {
					r := roles{regions: make([]members, n), before: i}
					if grown := counted[i] - sent[i]; grown > 0 && grown >= r.slack(key, left(i)) {
						sent[i], again = counted[i], true
					}
				}
			}
		}
		if !slices.Equal(sent, counted) {
			t.Fatalf("%d regions, limit %d: %d hits were sent of %d", n, limit, sent, counted)
		}
	}
}

// TestWithheldSumsFollowOthers: the hits of other regions bring a key near its
// limit, and then what was withheld of it matters.
func TestWithheldSumsFollowOthers(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 60_000}
	r := newRig(Config{}, "a", "b", "c")
	r.run(3 * time.Second)
	a1, b1 := r.of("a1"), r.of("b1")
	a1.Add(r.mono(a1), testKey(1), epoch, plain, 3, Room{57, 60})
	r.run(time.Second)
	if got := r.total("b1", 1); got != 0 {
		t.Fatalf("b1 knows of %d hits, want none", got)
	}
	r.room = Room{27, 60} // as a1 has it when it receives those of b1
	b1.Add(r.mono(b1), testKey(1), epoch, plain, 30, Room{30, 60})
	r.run(time.Second)
	for _, name := range []string{"b1", "c1"} {
		if got := r.total(name, 1); got != 33 {
			t.Errorf("%s knows of %d hits, want 33", name, got)
		}
	}
}

// A leaving daemon sends delayed increments and later counts; the only daemon
// of a region sends them to the other regions too.
func TestLeavingSendsAllCounts(t *testing.T) {
	for _, regions := range [][]string{{"a", "a"}, {"a", "b"}, {"a", "a", "b"}} {
		r := newRig(Config{Quiet: time.Minute}, regions...)
		r.run(5 * time.Second)
		a1, last := r.of("a1"), r.members[len(r.members)-1]
		a1.Add(r.mono(a1), testKey(1), epoch, hour, 10, roomy)
		r.run(time.Second)
		if got := last.Total(testKey(1), epoch); got != 0 {
			t.Fatalf("%v: %d hits told, though they wait", regions, got)
		}
		a1.Leave(r.mono(a1))
		a1.Add(r.mono(a1), testKey(1), epoch, hour, 5, roomy)
		r.run(3 * time.Second)
		if got := last.Total(testKey(1), epoch); got != 15 {
			t.Errorf("%v: %d hits of 15 were told", regions, got)
		}
	}
}

// TestLostSumsAreSentBeforeSmallOnes: a sum that is lost on its way is sent
// again, although it grew since by so little that the growth is withheld.
func TestLostSumsAreSentBeforeSmallOnes(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 3_600_000}
	r := newRig(Config{}, "a", "b", "c")
	r.run(3 * time.Second)
	a1, room := r.of("a1"), Room{9_000, 10_000}
	r.lost = func(_, to *member) bool { return to.region == "c" }
	a1.Add(r.mono(a1), testKey(1), epoch, plain, 2_000, room)
	r.run(time.Second)
	a1.Add(r.mono(a1), testKey(1), epoch, plain, 1, room)
	r.run(time.Second)
	r.lost = nil
	r.run(10 * time.Second)
	for _, name := range []string{"b1", "c1"} {
		if got := r.total(name, 1); got < 2_000 {
			t.Errorf("%s knows of %d hits, want 2000", name, got)
		}
	}
}

// TestDelayedIncrementsReachAllRegions: an increment that quiet delays is sent
// to one region with a sum that was lost. The others receive it, too.
func TestDelayedIncrementsReachAllRegions(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 3_600_000}
	r := newRig(Config{Quiet: 5 * time.Second}, "a", "b", "c")
	r.run(3 * time.Second)
	a1, room := r.of("a1"), Room{1_000, 1_000}
	r.lost = func(_, to *member) bool { return to.region == "c" }
	a1.Add(r.mono(a1), testKey(1), epoch, plain, 200, room)
	r.run(time.Second)
	if b := r.total("b1", 1); b != 200 {
		t.Fatalf("b1 knows of %d hits, want 200", b)
	}
	r.refund("a1", 1, 150)
	r.run(time.Second)
	r.lost = nil
	r.run(20 * time.Second)
	for _, name := range []string{"b1", "c1"} {
		if got := r.total(name, 1); got != 50 {
			t.Errorf("%s knows of %d hits, want 50", name, got)
		}
	}
}

// TestSumsOfOneRegionCountForNoOther: a daemon that takes over in one region
// receives what the others do not have yet. They receive it once it matters.
func TestSumsOfOneRegionCountForNoOther(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 60_000}
	r := newRig(Config{}, "a", "b", "b", "c")
	r.run(3 * time.Second)
	a1, b1, c1 := r.of("a1"), r.of("b1"), r.of("c1")
	k := r.keyOf("b1")
	a1.Add(r.mono(a1), testKey(k), epoch, plain, 7, Room{53, 60})
	r.run(time.Second)
	a1.Add(r.mono(a1), testKey(k), epoch, plain, 1, Room{52, 60})
	r.run(time.Second)
	if got := r.total("c1", k); got != 7 {
		t.Fatalf("c1 knows of %d hits, want 7", got)
	}
	r.crash(b1)
	r.run(3 * time.Second)
	if got := r.total("b2", k); got != 8 {
		t.Errorf("b2, which takes over, knows of %d hits, want 8", got)
	}
	r.room = Room{4, 60}
	c1.Add(r.mono(c1), testKey(k), epoch, plain, 48, Room{5, 60})
	r.run(time.Second)
	for _, name := range []string{"b2", "c1"} {
		if got := r.total(name, k); got != 56 {
			t.Errorf("%s knows of %d hits, want 56", name, got)
		}
	}
}

// TestWithheldSumsOfOneWindowCountForNoOther: a region that lacks the sum of an
// earlier window receives that alone, and the withheld sum of the latest window
// is still unsent.
func TestWithheldSumsOfOneWindowCountForNoOther(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 60_000}
	r := newRig(Config{}, "a", "b", "c")
	r.run(3 * time.Second)
	a1, later := r.of("a1"), epoch+60_000
	add := func(window int64, n, left uint64) {
		a1.Add(r.mono(a1), testKey(1), window, plain, n, Room{left, 10_000})
		r.run(time.Second)
	}
	add(epoch, 200, 9_800)
	add(later, 490, 8_000)
	if got := r.total("b1", 1); got != 0 {
		t.Errorf("b1 knows of %d hits of the earlier window, want none", got)
	}
	r.lost = func(_, to *member) bool { return to.region == "c" }
	add(epoch, 2_000, 7_800)
	r.lost = nil
	r.run(10 * time.Second)
	add(later, 440, 7_200)
	for _, name := range []string{"b1", "c1"} {
		if got := r.total(name, 1); got != 2_200 {
			t.Errorf("%s knows of %d hits of the earlier window, want 2200", name, got)
		}
		if got := r.of(name).Total(testKey(1), later); got != 930 {
			t.Errorf("%s knows of %d hits of the later window, want 930", name, got)
		}
	}
}

// TestEarlierWindowsWithholdNothing: hits of an earlier window are sent, and
// leave the withheld sum of the latest one as it is.
func TestEarlierWindowsWithholdNothing(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 60_000}
	r := newRig(Config{}, "a", "b", "c")
	r.run(3 * time.Second)
	a1, later := r.of("a1"), epoch+60_000
	for _, hits := range []struct {
		window int64
		n      uint64
	}{{later, 2_000}, {epoch, 50}, {later, 10}} {
		a1.Add(r.mono(a1), testKey(1), hits.window, plain, hits.n, Room{8_000, 10_000})
		r.run(time.Second)
	}
	for _, name := range []string{"b1", "c1"} {
		if early, late := r.total(name, 1), r.of(name).Total(testKey(1), later); early != 50 || late != 2_000 {
			t.Errorf("%s knows of %d and %d hits, want 50 and 2000", name, early, late)
		}
	}
}

// TestLostSumsOfEarlierWindows: a sum that is lost on its way is sent again,
// although it grew by little since and its window is over.
func TestLostSumsOfEarlierWindows(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 60_000}
	r := newRig(Config{}, "a", "b", "c")
	r.run(3 * time.Second)
	a1 := r.of("a1")
	r.lost = func(_, to *member) bool { return to.region == "c" }
	for _, hits := range []struct {
		window int64
		n      uint64
	}{{epoch, 2_000}, {epoch, 1}, {epoch + 60_000, 1}} {
		a1.Add(r.mono(a1), testKey(1), hits.window, plain, hits.n, Room{9_000, 10_000})
		r.run(time.Second)
	}
	r.lost = nil
	r.run(10 * time.Second)
	if got := r.total("c1", 1); got < 2_000 {
		t.Errorf("c1 knows of %d hits, want 2000", got)
	}
}

// TestWithheldSumsOfLongWindows: a key has windows of two lengths. The
// withheld sum of a long window is sent when a short one begins in it, and hits
// near the limit are sent at once.
func TestWithheldSumsOfLongWindows(t *testing.T) {
	hour, plain := CellMeta{Rule: 1, WindowLength: 3_600_000}, CellMeta{Rule: 2, WindowLength: 60_000}
	r := newRig(Config{}, "a", "b", "c")
	r.run(3 * time.Second)
	a1, b1 := r.of("a1"), r.of("b1")
	a1.Add(r.mono(a1), testKey(1), epoch, hour, 3, Room{57, 60})
	r.run(time.Second)
	if got := r.total("b1", 1); got != 0 {
		t.Fatalf("b1 knows of %d hits, want none", got)
	}
	a1.Add(r.mono(a1), testKey(1), epoch+60_000, plain, 1, Room{59, 60})
	r.run(time.Second)
	if got := r.total("b1", 1); got != 3 {
		t.Errorf("b1 knows of %d hits, want 3", got)
	}
	if got := b1.Total(testKey(1), epoch+60_000); got != 0 {
		t.Errorf("b1 knows of %d hits of the short window, want none", got)
	}
	a1.Add(r.mono(a1), testKey(1), epoch, hour, 30, Room{27, 60})
	r.run(50 * time.Millisecond)
	if got := r.total("b1", 1); got != 33 {
		t.Errorf("b1 knows of %d hits at once, want 33", got)
	}
}

// TestSuccessorSendsWhatItDidNot: a daemon takes over from an aggregator that
// no region receives messages from. Hits that it received as the successor do
// not count as sent.
func TestSuccessorSendsWhatItDidNot(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 3_600_000}
	r := newRig(Config{}, "a", "a", "a", "b", "b", "c")
	r.run(3 * time.Second)
	k := r.kept("a1", "a2")
	a1, a2, b2 := r.of("a1"), r.of("a2"), r.of("b2")
	r.lost = func(from, to *member) bool { return from == a1 && to != a2 }
	a1.Add(r.mono(a1), testKey(k), epoch, plain, 2_000, Room{8_000, 10_000})
	r.run(2 * time.Second)
	r.lost = func(from, _ *member) bool { return from == a1 }
	r.run(15 * time.Second)
	r.crash(b2)
	r.run(3 * time.Second)
	a2.Add(r.mono(a2), testKey(k), epoch, plain, 1, Room{7_999, 10_000})
	r.run(3 * time.Second)
	for _, name := range []string{"b1", "c1"} {
		if got := r.total(name, k); got < 2_000 {
			t.Errorf("%s knows of %d hits, want 2000", name, got)
		}
	}
}

// TestSumsThatManyMessagesSend: a sum was lost, and grew by little since. It is
// sent again although other changes, which fill many messages, come first.
func TestSumsThatManyMessagesSend(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 60_000}
	r := newRig(Config{FrameCells: 4}, "a", "b", "c")
	r.run(3 * time.Second)
	a1 := r.of("a1")
	r.lost = func(_, to *member) bool { return to.region == "c" }
	a1.Add(r.mono(a1), testKey(1), epoch, plain, 2_000, Room{8_000, 10_000})
	r.run(time.Second)
	for k := range 20 {
		r.add("a1", 2+k, 1)
	}
	r.run(time.Second)
	a1.Add(r.mono(a1), testKey(1), epoch, plain, 1, Room{7_999, 10_000})
	r.run(time.Second)
	r.lost = nil
	r.run(10 * time.Second)
	if got := r.total("c1", 1); got < 2_000 {
		t.Errorf("c1 knows of %d hits, want 2000", got)
	}
}

// TestWithheldHitsNearALimit: what a region withholds is sent once the hits of
// other regions bring the key near its limit.
func TestWithheldHitsNearALimit(t *testing.T) {
	r := newRig(Config{}, "a", "b", "c")
	r.run(3 * time.Second)
	add := func(name string, n uint64, room Room) {
		m := r.of(name)
		m.Add(r.mono(m), testKey(1), epoch, CellMeta{Rule: 1, WindowLength: 60_000}, n, room)
		r.room = room
		r.run(time.Second)
	}
	add("a1", 2, Room{58, 60})
	if got := r.total("c1", 1); got != 0 {
		t.Fatalf("c1 knows of %d hits, want the two of a1 to be withheld", got)
	}
	add("b1", 38, Room{20, 60})
	if got := r.total("c1", 1); got != 40 {
		t.Errorf("c1 knows of %d hits of 40", got)
	}
}
