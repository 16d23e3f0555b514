// Package sat holds integer arithmetic that saturates: a result that does not
// fit is the greatest number of its type, or 0, instead of a wrapped one. So
// hostile amounts cannot turn a large count into a small one.
package sat

import (
	"math"
	"math/bits"
)

// Add returns a + b, or math.MaxUint64 if that overflows.
func Add(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint64
}

// Sub returns a - b, or 0 if b is greater.
func Sub(a, b uint64) uint64 { return a - min(a, b) }

// AddInt returns a + b, or math.MaxInt64 if that is greater.
func AddInt(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// MulDiv returns a * b / c rounded down, through a 128-bit product. It returns
// math.MaxUint64 if the quotient does not fit or c is 0.
func MulDiv(a, b, c uint64) uint64 {
	q, _ := mulDiv(a, b, c)
	return q
}

// MulDivUp returns a * b / c rounded up, through a 128-bit product. It returns
// math.MaxUint64 if the quotient does not fit or c is 0.
func MulDivUp(a, b, c uint64) uint64 {
	q, rest := mulDiv(a, b, c)
	if rest > 0 {
		return Add(q, 1)
	}
	return q
}

func mulDiv(a, b, c uint64) (quotient, rest uint64) {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return math.MaxUint64, 0
	}
	return bits.Div64(hi, lo, c)
}
