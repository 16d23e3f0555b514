package transfer

import (
	"math"
	"math/bits"
)

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

// mulDiv returns a*b/c rounded down, through a 128-bit product, and whether
// that is exact; the largest uint64 when the quotient does not fit or c is 0.
func mulDiv(a, b, c uint64) (quotient uint64, exact bool) {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return math.MaxUint64, true
	}
	q, r := bits.Div64(hi, lo, c)
	return q, r == 0
}

// mulDivDown is mulDiv without its second result.
func mulDivDown(a, b, c uint64) uint64 {
	q, _ := mulDiv(a, b, c)
	return q
}

// mulDivUp is mulDiv rounded up.
func mulDivUp(a, b, c uint64) uint64 {
	q, exact := mulDiv(a, b, c)
	if !exact {
		q++ // A quotient with a remainder is below the largest: c is 2 or more.
	}
	return q
}

// span turns a time into an unsigned one; negative times are 0.
func span(ms int64) uint64 {
	return uint64(max(ms, 0))
}

// later returns now+d, capped at the last instant there is.
func later(now, d int64) int64 {
	if d > 0 && now > math.MaxInt64-d {
		return math.MaxInt64
	}
	return now + d
}

// waiting reports whether a pause of at most d that ends at until lasts. An end
// further off than d was set before the clock stepped back, and is over.
func waiting(now, until, d int64) bool {
	return now < until && until <= later(now, d)
}
