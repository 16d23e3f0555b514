package crdt

import "fmt"

// PN is the number of hits that one writer admitted, P, and the number of those
// that it refunded, N. Both only grow, and N <= P. The zero value counts
// nothing.
//
// A P of Max or more is saturated: the real number is unknown, so refunds are
// not subtracted from it.
type PN struct{ P, N uint64 }

// Net returns the hits that were admitted and not refunded.
func (v PN) Net() uint64 {
	if v.P >= Max {
		return v.P
	}
	return v.P - min(v.N, v.P)
}

// Join returns the least value that covers v and w: the maximum of each number.
// This is exact for two values of the same writer. Both numbers only grow, so
// one of the two values is the later in both. It keeps N <= P. Use Sum for
// totals over several writers.
func (v PN) Join(w PN) PN { return PN{max(v.P, w.P), max(v.N, w.N)} }

// String returns "P-N".
func (v PN) String() string { return fmt.Sprintf("%d-%d", v.P, v.N) }
