package sticky

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt/crdttest"
)

func drawWatermarks(t *rapid.T, name string) Watermarks {
	windows := rapid.SliceOfNDistinct(rapid.Int64Range(0, 6), 0, 5, rapid.ID[int64]).Draw(t, name+" labels")
	slices.Sort(windows)
	var m Watermarks
	for _, l := range windows {
		m = append(m, Watermark{
			Window: l, Amount: rapid.Uint64Range(0, 3).Draw(t, name+" amount"), End: rapid.Int64Range(0, 5).Draw(t, name+" end"),
		})
	}
	return m
}

// watermarkLattice returns the lattice of watermarks.
func watermarkLattice() crdttest.Lattice[Watermarks] {
	return crdttest.Lattice[Watermarks]{
		Join: func(into, from *Watermarks) bool {
			was := *into
			*into = into.Join(*from)
			return !slices.Equal(*into, was)
		},
		Covers: func(a, b *Watermarks) bool {
			for _, x := range *b {
				if !slices.ContainsFunc(*a, func(y Watermark) bool {
					return y.Window == x.Window && y.Amount >= x.Amount && y.End >= x.End
				}) {
					return false
				}
			}
			return true
		},
		Equal: func(a, b *Watermarks) bool { return slices.Equal(*a, *b) },
		Clone: func(m *Watermarks) Watermarks { return slices.Clone(*m) },
		Show:  func(m *Watermarks) string { return fmt.Sprint(*m) },
	}
}

// TestWatermarksLaws proves the laws of a join of watermarks.
func TestWatermarksLaws(t *testing.T) {
	crdttest.Laws(t, watermarkLattice(), rapid.Custom(func(t *rapid.T) Watermarks { return drawWatermarks(t, "m") }))
}

// TestWatermarksCover compares Covers and Above with the definitions.
func TestWatermarksCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawWatermarks(t, "a"), drawWatermarks(t, "b")
		ab := a.Join(b)
		if err := ab.Validate(); err != nil {
			t.Fatalf("%v: %v", ab, err)
		}
		if !ab.Above(a) || !ab.Above(b) {
			t.Fatalf("%v is not above %v and %v", ab, a, b)
		}
		if a.Above(b) != slices.Equal(ab, a) {
			t.Fatalf("%v above %v: %v, their join is %v", a, b, a.Above(b), ab)
		}
	})
}

func TestWatermarksAmount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawWatermarks(t, "m")
		for window := range int64(8) {
			want := uint64(0)
			for _, x := range m {
				if x.Window == window {
					want = x.Amount
				}
			}
			if got := m.Amount(window); got != want {
				t.Fatalf("%v: amount %d of window %d, want %d", m, got, window, want)
			}
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
