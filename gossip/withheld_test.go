package gossip

import (
	"testing"
	"time"
)

// TestSmallSumsAreWithheld: the sum of a region is sent to other regions once
// it grew by a quarter of what each of them could add before the limit is
// reached, once the key is near its limit, or when the window counts beyond its
// end.
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
		{"a quarter of a third", plain, []uint64{7}, 7},
		{"once more", plain, []uint64{7, 3}, 7},
		{"near the limit", plain, []uint64{7, 20, 3, 1}, 31},
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
