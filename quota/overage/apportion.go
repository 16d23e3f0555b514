package overage

import (
	"cmp"
	"math/bits"
	"slices"
)

// apportion splits total in proportion to weights by largest remainder
// (Hamilton's method): each part is rounded down, and the remaining units go
// one each to the largest fractions, ties to the lower index. The parts sum to
// total exactly. Weights that are all zero count as equal. The sum of the
// weights must fit in 63 bits.
func apportion(total uint64, weights []uint64) []uint64 {
	parts := make([]uint64, len(weights))
	if len(weights) == 0 {
		return parts
	}
	sum := uint64(0)
	for _, w := range weights {
		sum += w
	}
	if sum == 0 {
		weights, sum = slices.Repeat([]uint64{1}, len(weights)), uint64(len(weights))
	}
	fractions := make([]uint64, len(weights))
	order := make([]int, len(weights))
	left := total
	for i, w := range weights {
		hi, lo := bits.Mul64(total, w) // w <= sum: the quotient fits.
		parts[i], fractions[i] = bits.Div64(hi%sum, lo, sum)
		left -= parts[i]
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(fractions[b], fractions[a]) })
	for _, i := range order[:left] { // Fewer than there are weights.
		parts[i]++
	}
	return parts
}
