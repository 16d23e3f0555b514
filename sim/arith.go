package sim

import (
	"math"
	"math/bits"
)

// mulDivUp returns a x b / c, rounded up, for b of at most c.
func mulDivUp(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, r := bits.Div64(hi, lo, c)
	if r > 0 {
		q++
	}
	return q
}

// addSat returns a + b, at most the greatest number.
func addSat(a, b uint64) uint64 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxUint64
}
