package crdt

import (
	"fmt"
)

// Sum is a (P, N) summed up over the slots that one aggregator had heard of:
// what a region tells the others. Its order is lexicographic, P before N; the
// join is the greater of the two. The zero value is empty.
//
// Why not the maximum of P and of N? Aggregators see different slots. Say slot
// a admitted 100 and slot b admitted 50 and refunded them. One aggregator,
// which has heard of a only, publishes (100, 0); another, of b only, (50, 50).
// The truth is (150, 50): 100 net. Element by element they make (100, 50),
// 50 net: refunds of b taken off admissions of a. The lexicographic join keeps
// (100, 0), a pair that belongs together.
//
// It is an estimate all the same. No aggregator's pair bounds the truth from
// either side, for it may lack admissions or refunds; only P and N, each for
// itself, are lower bounds. The truth is reached when an aggregator has heard of all slots: no
// other pair is greater than its one. So sums feed the estimate, never the
// gate that guarantees the limit.
type Sum struct{ P, N uint64 }

// Compare returns -1 when s is less than t, 1 when it is greater, 0 when equal.
func (s Sum) Compare(t Sum) int {
	switch {
	case s == t:
		return 0
	case s.P < t.P || s.P == t.P && s.N < t.N:
		return -1
	}
	return 1
}

// Join joins t in and reports whether that changed s.
func (s *Sum) Join(t Sum) (changed bool) {
	if s.Compare(t) >= 0 {
		return false
	}
	*s = t
	return true
}

// Valid reports whether no more was refunded than admitted, as every sum is
// that an aggregator publishes.
func (s Sum) Valid() bool { return s.N <= s.P }

// Net returns what was admitted and not refunded, as far as known. A P of
// Max is saturated and counts as that number. It is 0 for a sum
// that is not Valid.
func (s Sum) Net() uint64 {
	if s.P >= Max {
		return s.P
	}
	return s.P - min(s.N, s.P)
}

// String returns "P-N".
func (s Sum) String() string { return fmt.Sprintf("%d-%d", s.P, s.N) }
