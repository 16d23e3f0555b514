package quota

import (
	"math"
	"math/bits"
)

// never is the instant that does not come, and the longest time there is.
const never = math.MaxInt64

// addSat returns a+b, or the largest uint64 when that overflows.
func addSat(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// subFloor returns a-b, or 0 when b is larger.
func subFloor(a, b uint64) uint64 {
	if b >= a {
		return 0
	}
	return a - b
}

// mulDiv returns a*b/c rounded down and whether it is exact, through a
// 128-bit product; the largest uint64 when the quotient does not fit or c is
// zero.
func mulDiv(a, b, c uint64) (quotient uint64, exact bool) {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return math.MaxUint64, true
	}
	q, r := bits.Div64(hi, lo, c)
	return q, r == 0
}

// mulDivUp is mulDiv rounded up.
func mulDivUp(a, b, c uint64) uint64 {
	q, exact := mulDiv(a, b, c)
	if !exact {
		q++
	}
	return q
}

// millis turns an unsigned time into a signed one, capped at never.
func millis(ms uint64) int64 {
	if ms > never {
		return never
	}
	return int64(ms)
}

// later returns t+d, capped at never. d is not negative.
func later(t, d int64) int64 {
	if t > never-d {
		return never
	}
	return t + d
}
