package sticky

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawWatermarks(t *rapid.T, name string) Watermarks {
	windows := rapid.SliceOfNDistinct(rapid.Int64Range(0, 6), 0, 5, rapid.ID[int64]).Draw(t, name+" labels")
	slices.Sort(windows)
	var m Watermarks
	for _, l := range windows {
		m = append(m, Watermark{l, rapid.Uint64Range(0, 3).Draw(t, name+" amount"), rapid.Int64Range(0, 5).Draw(t, name+" end")})
	}
	return m
}

// TestWatermarksLaws holds marks to the laws of a join semilattice, and what
// else relies on them.
func TestWatermarksLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawWatermarks(t, "a"), drawWatermarks(t, "b"), drawWatermarks(t, "c")
		was := slices.Clone(a)
		ab := a.Join(b)
		if !slices.Equal(ab, b.Join(a)) {
			t.Fatalf("%v and %v join to %v one way and %v the other", a, b, ab, b.Join(a))
		}
		if !slices.Equal(ab.Join(c), a.Join(b.Join(c))) {
			t.Fatalf("the join of %v, %v and %v depends on the order", a, b, c)
		}
		if !slices.Equal(a.Join(a), a) || !slices.Equal(ab.Join(b), ab) {
			t.Fatalf("joining %v to %v twice is not joining it once", b, a)
		}
		if !slices.Equal(a, was) {
			t.Fatalf("a join changed %v to %v", was, a)
		}
		if err := ab.Validate(); err != nil {
			t.Fatalf("%v: %v", ab, err)
		}
		if !ab.Covers(a) || !ab.Covers(b) || !ab.Above(a) || !ab.Above(b) {
			t.Fatalf("%v does not cover %v and %v", ab, a, b)
		}
		if a.Above(b) != slices.Equal(ab, a) {
			t.Fatalf("above says %v of %v and %v: their join is %v", a.Above(b), a, b, ab)
		}
		covers := true
		for _, x := range b {
			covers = covers && a.Amount(x.Window) >= x.Amount
		}
		if a.Covers(b) != covers {
			t.Fatalf("%v covers %v: %v, want %v", a, b, a.Covers(b), covers)
		}
	})
}

func TestWatermarksEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawWatermarks(t, "m")
		at, n := rapid.Int64Range(0, 6).Draw(t, "at"), rapid.IntRange(0, 6).Draw(t, "n")
		since := m.Since(at)
		for _, x := range m {
			if kept := slices.Contains(since, x); kept != (x.End >= at) {
				t.Fatalf("of %v since %d: %v", m, at, since)
			}
		}
		kept, ended := m.Latest(n)
		if len(kept) > n {
			t.Fatalf("%d of %v: %v", n, m, kept)
		}
		for _, x := range m {
			if !slices.Contains(kept, x) && x.End > ended {
				t.Fatalf("%d of %v: %v, ended %d: mark %v is later", n, m, kept, ended, x)
			}
		}
	})
}

func TestWatermarksValidate(t *testing.T) {
	many := make(Watermarks, MaxWatermarks+1)
	for i := range many {
		many[i].Window = int64(i)
	}
	for _, m := range []Watermarks{many, {{Window: 1}, {Window: 1}}, {{Window: 2}, {Window: 1}}} {
		if m.Validate() == nil {
			t.Errorf("%d marks from %v on are taken: want an error", len(m), m[0])
		}
	}
	if err := many[1:].Validate(); err != nil {
		t.Error(err)
	}
}
