package crdt

// Sum is the (P, N) total over the cells that one aggregator has received. A
// region publishes it to the other regions. The order is lexicographic, P
// before N, and the join is the greater of the two. The zero value is empty.
//
// The element-wise maximum of PN would be wrong here, because two aggregators
// may have received different cells. Suppose writer a admitted 100 hits, and
// writer b admitted 50 and refunded all of them. An aggregator that has only
// the cell of a publishes (100, 0). Another that has only the cell of b
// publishes (50, 50). The truth is (150, 50): 100 net. Element by element they
// give (100, 50), 50 net: refunds of b subtracted from admissions of a. The
// lexicographic join keeps (100, 0), a pair that one aggregator observed.
//
// A Sum is an estimate. Its Net bounds the true net count from neither side,
// since admissions or refunds may be missing. P and N, each for itself, are
// lower bounds. The greatest Sum is the truth as soon as one aggregator has
// received every cell. Therefore sums feed the estimate gate, never the rights
// gate.
type Sum struct{ P, N uint64 }

// Compare returns -1 if s is less than t, 1 if it is greater, 0 if they are
// equal.
func (s Sum) Compare(t Sum) int {
	switch {
	case s == t:
		return 0
	case s.P < t.P || s.P == t.P && s.N < t.N:
		return -1
	}
	return 1
}

// Join returns the greater of s and t.
func (s Sum) Join(t Sum) Sum {
	if s.Compare(t) >= 0 {
		return s
	}
	return t
}
