package transfer

import (
	"math"

	"github.com/georld/rld/internal/sat"
)

// collect decides how an amount is collected from the daemons of a region. It
// sets out[i] to the part of the daemon with rows[i]; the parts sum to amount,
// or to less where the daemons have less. The daemon with most rights comes
// first and transfers all it can, for few transfers; equals come in the order
// of rows. A daemon keeps the hits of its last second and at least one right.
// out has at least the length of rows; its first len(rows) elements are
// overwritten.
func collect(amount uint64, rows []DonorState, out []uint64) {
	out = out[:min(len(out), len(rows))]
	clear(out)
	for amount > 0 {
		best, most := -1, uint64(0)
		for i := range out {
			if can := honor(math.MaxUint64, rows[i]); out[i] == 0 && can > most {
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

// honor returns how many rights a daemon transfers when its aggregator collects
// amount of it. It may have fewer than the aggregator believed.
func honor(amount uint64, o DonorState) uint64 {
	return min(amount, sat.Sub(o.Rights, max(o.Second, o.Recent, 1)))
}

// split decides how a transfer to a region is split over its daemons, by their
// offered rates and rounded down. It sets out[i] to the part of the daemon with
// rates[i] and returns the rest, which stays with the aggregator; without any
// traffic that is the whole amount. out has at least the length of rates; its
// first len(rates) elements are overwritten.
func split(amount uint64, rates, out []uint64) (rest uint64) {
	out = out[:min(len(out), len(rates))]
	clear(out)
	if len(out) == 0 {
		return amount
	}
	most := math.MaxUint64 / uint64(len(out)) // Keeps the sum within 64 bits.
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
