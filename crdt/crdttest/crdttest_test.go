package crdttest_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt/crdttest"
)

// Mutations must be found here. rapid would file each, and
// look for the smallest form of each for up to half a minute.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "50ms", "rapid.seed": "1", "rapid.checks": "500"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// recorder is a test that may fail: it keeps its errors.
type recorder struct {
	testing.TB
	failed bool
	text   strings.Builder
}

func (r *recorder) Logf(format string, args ...any)   { fmt.Fprintf(&r.text, format+"\n", args...) }
func (r *recorder) Log(args ...any)                   { fmt.Fprintln(&r.text, args...) }
func (r *recorder) Errorf(format string, args ...any) { r.Logf(format, args...); r.failed = true }
func (r *recorder) Fail()                             { r.failed = true }
func (r *recorder) FailNow()                          { r.failed = true }
func (r *recorder) Failed() bool                      { return r.failed }

// wantFailure runs a check that must fail with a message.
func wantFailure(t *testing.T, why string, check func(t rapid.TB)) {
	t.Helper()
	r := &recorder{TB: t}
	check(r)
	switch {
	case why == "" && r.failed:
		t.Errorf("failed:\n%s", r.text.String())
	case why != "" && !r.failed:
		t.Errorf("passed, want a failure that says %q", why)
	case !strings.Contains(r.text.String(), why):
		t.Errorf("failed, but without saying %q:\n%s", why, r.text.String())
	}
}

// pair is a value of two numbers, for lattices right and wrong.
type pair struct{ a, b uint64 }

// pairs returns the lattice of pairs whose order is the element-wise one.
func pairs() crdttest.Lattice[pair] {
	return crdttest.Lattice[pair]{
		Join: func(into, from *pair) bool {
			was := *into
			*into = pair{max(into.a, from.a), max(into.b, from.b)}
			return *into != was
		},
		Covers: func(x, y *pair) bool { return x.a >= y.a && x.b >= y.b },
		Equal:  func(x, y *pair) bool { return *x == *y },
		Clone:  func(x *pair) pair { return *x },
		Show:   func(x *pair) string { return fmt.Sprintf("%d %d", x.a, x.b) },
		Delta: func(have, since *pair) pair {
			if since.a >= have.a && since.b >= have.b {
				return pair{}
			}
			return *have
		},
		Digest: func(x *pair) uint64 { return x.a<<32 | x.b },
	}
}

// lww returns the lattice of a register: b was written at time a, the last
// writer wins, ties go to the greater value.
func lww() crdttest.Lattice[pair] {
	l := pairs()
	l.Covers = func(x, y *pair) bool { return x.a > y.a || x.a == y.a && x.b >= y.b }
	l.Join = func(into, from *pair) bool {
		if from.a > into.a || from.a == into.a && from.b > into.b {
			*into = *from
			return true
		}
		return false
	}
	l.Delta = func(have, since *pair) pair {
		if since.a > have.a || since.a == have.a && since.b >= have.b {
			return pair{}
		}
		return *have
	}
	l.Selective = true
	return l
}

// TestLawsOfPairs mutates a correct lattice, one law at a time.
func TestLawsOfPairs(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) pair {
		n := rapid.Uint64Range(0, 3)
		return pair{n.Draw(t, "a"), n.Draw(t, "b")}
	})
	tests := []struct {
		name   string
		mutate func() crdttest.Lattice[pair]
		want   string // the law that breaks, "" for none
	}{
		{"correct", pairs, ""},
		{"last writer wins", lww, ""},
		{"last writer wins, ties kept", func() crdttest.Lattice[pair] {
			l := lww()
			l.Join = func(into, from *pair) bool {
				if from.a > into.a {
					*into = *from
					return true
				}
				return false
			}
			return l
		}, "x join y = y join x"},
		{"adds", func() crdttest.Lattice[pair] {
			l := pairs()
			l.Join = func(into, from *pair) bool {
				into.a, into.b = into.a+from.a, into.b+from.b
				return *from != pair{}
			}
			return l
		}, "x join x = x"},
		{"rock, paper, scissors", func() crdttest.Lattice[pair] {
			l := pairs()
			beats := func(x, y *pair) bool { return x.a != 3 && (y.a == 3 || (x.a+2)%3 == y.a) }
			l.Join = func(into, from *pair) bool {
				if !beats(from, into) {
					return false
				}
				into.a = from.a
				return true
			}
			l.Covers = func(x, y *pair) bool { return !beats(y, x) }
			l.Equal = func(x, y *pair) bool { return x.a == y.a }
			l.Delta, l.Digest = nil, nil
			return l
		}, "(x join y) join z = x join (y join z)"},
		{"takes the minimum", func() crdttest.Lattice[pair] {
			l := pairs()
			l.Join = func(into, from *pair) bool {
				was := *into
				*into = pair{min(into.a, from.a), min(into.b, from.b)}
				return *into != was
			}
			return l
		}, "<= x join y"},
		{"order of another lattice", func() crdttest.Lattice[pair] {
			l := pairs()
			l.Covers = lww().Covers
			return l
		}, "the join is least"},
		{"overshoots", func() crdttest.Lattice[pair] {
			l := pairs()
			join := l.Join
			l.Join = func(into, from *pair) bool {
				was := *into
				if join(into, from); was != *from {
					into.b = 9
				}
				return *into != was
			}
			return l
		}, "the join is least"},
		{"changes its argument", func() crdttest.Lattice[pair] {
			l := pairs()
			join := l.Join
			l.Join = func(into, from *pair) bool { defer join(from, into); return join(into, from) }
			return l
		}, "a join neither changes nor keeps its argument"},
		{"reports no change", func() crdttest.Lattice[pair] {
			l := pairs()
			join := l.Join
			l.Join = func(into, from *pair) bool { join(into, from); return false }
			return l
		}, "a join reports whether it changed x"},
		{"delta forgets", func() crdttest.Lattice[pair] {
			l := pairs()
			delta := l.Delta
			l.Delta = func(have, since *pair) pair { return pair{a: delta(have, since).a} }
			return l
		}, "x join delta(y, x) = x join y"},
		{"delta invents", func() crdttest.Lattice[pair] {
			l := pairs()
			l.Delta = func(have, since *pair) pair { return pair{max(have.a, since.a), max(have.b, since.b)} }
			return l
		}, "delta(y, x) <= y"},
		{"delta changes what it is taken against", func() crdttest.Lattice[pair] {
			l := pairs()
			delta := l.Delta
			l.Delta = func(have, since *pair) pair { defer l.Join(since, have); return delta(have, since) }
			return l
		}, "a delta is taken without changing x"},
		{"delta repeats", func() crdttest.Lattice[pair] {
			l := pairs()
			l.Delta = func(have, _ *pair) pair { return *have }
			return l
		}, "y <= x, so delta(y, x) is nothing"},
		{"digest of a half", func() crdttest.Lattice[pair] {
			l := pairs()
			l.Digest = func(x *pair) uint64 { return x.a }
			return l
		}, "digests are equal if and only if values are"},
		{"mixture", func() crdttest.Lattice[pair] {
			l := pairs()
			l.Selective = true
			return l
		}, "x join y is x or y, not a mixture"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantFailure(t, tt.want, func(t rapid.TB) { crdttest.Laws(t, tt.mutate(), gen) })
		})
	}
}

// vector is a counter with a number a writer, the memory of which can be shared
// by mistake.
type vector []uint64

func vectors() crdttest.Lattice[vector] {
	return crdttest.Lattice[vector]{
		Join: func(into, from *vector) (changed bool) {
			*into = (*into).long(len(*from))
			for i, n := range *from {
				changed = changed || n > (*into)[i]
				(*into)[i] = max((*into)[i], n)
			}
			return changed
		},
		Covers: func(x, y *vector) bool {
			for i, n := range *y {
				if n > 0 && (i >= len(*x) || n > (*x)[i]) {
					return false
				}
			}
			return true
		},
		Equal: func(x, y *vector) bool {
			n := max(len(*x), len(*y))
			return fmt.Sprint((*x).long(n)) == fmt.Sprint((*y).long(n))
		},
		Clone: func(x *vector) vector { return append(vector(nil), *x...) },
		Show:  func(x *vector) string { return fmt.Sprint([]uint64(*x)) },
		Delta: func(have, since *vector) vector {
			var d vector
			for i, n := range *have {
				if i >= len(*since) || n > (*since)[i] {
					d = d.long(i + 1)
					d[i] = n
				}
			}
			return d
		},
	}
}

// long returns v with at least n numbers, in memory of its own if it grew.
func (v vector) long(n int) vector {
	if len(v) >= n {
		return v
	}
	return append(append(vector(nil), v...), make(vector, n-len(v))...)
}

func TestLawsOfVectors(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) vector {
		return rapid.SliceOfN(rapid.Uint64Range(0, 2), 3, 3).Draw(t, "vector")
	})
	wantFailure(t, "", func(t rapid.TB) { crdttest.Laws(t, vectors(), gen) })

	shares := vectors()
	join := shares.Join
	shares.Join = func(into, from *vector) bool {
		if shares.Covers(from, into) && !shares.Equal(from, into) {
			*into = *from // right value, wrong memory
			return true
		}
		return join(into, from)
	}
	wantFailure(t, "a join neither changes nor keeps its argument", func(t rapid.TB) {
		crdttest.Laws(t, shares, gen)
	})

	shares = vectors()
	shares.Delta = func(have, since *vector) vector {
		if shares.Covers(since, have) {
			return nil
		}
		return *have
	}
	wantFailure(t, "a delta keeps no memory of its value", func(t rapid.TB) {
		crdttest.Laws(t, shares, gen)
	})
}
