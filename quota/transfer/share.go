package transfer

import (
	"math"

	"github.com/georld/rld/internal/sat"
)

// Collect says how an amount is collected from the daemons of a region: out[i]
// is what the daemon with rows[i] gives, in all the amount or what can be had.
// The richest give first and all they can, so that there are few gifts. A
// daemon keeps what it was offered in the last second and at least one right.
// Equals give in the order of rows. out has at least the length of rows; its
// first len(rows) elements are overwritten.
func Collect(amount uint64, rows []DonorState, out []uint64) {
	out = out[:min(len(out), len(rows))]
	clear(out)
	for amount > 0 {
		best, most := -1, uint64(0)
		for i := range out {
			if can := Honor(math.MaxUint64, rows[i]); out[i] == 0 && can > most {
				best, most = i, can
			}
		}
		if best < 0 {
			return
		}
		out[best] = min(most, amount)
		amount -= out[best]
	}
}

// Honor returns what a daemon gives when its aggregator collects amount from it:
// by then it may have less than the aggregator believed.
func Honor(amount uint64, o DonorState) uint64 {
	return min(amount, sat.Sub(o.Rights, max(o.Second, o.Recent, 1)))
}

// Split says how a gift to a region is split over its daemons, by their offered
// rates and rounded down: out[i] is what the daemon with rates[i] gets, and the
// rest stays with the aggregator. Without any traffic that is all of it. out has
// at least the length of rates; its first len(rates) elements are overwritten.
func Split(amount uint64, rates, out []uint64) (rest uint64) {
	out = out[:min(len(out), len(rates))]
	clear(out)
	if len(out) == 0 {
		return amount
	}
	most := math.MaxUint64 / uint64(len(out)) // So that the sum fits.
	var sum uint64
	for i := range out {
		sum += min(rates[i], most)
	}
	if sum == 0 {
		return amount
	}
	rest = amount
	for i := range out {
		out[i] = sat.MulDiv(amount, min(rates[i], most), sum)
		rest -= out[i]
	}
	return rest
}
