package transfer

import (
	"math"

	"github.com/georld/rld/internal/sat"
)

// lastCallMS is the least time between two last calls of a donor.
const lastCallMS = 20

// Request is the state of a requester that its request carries: its rights
// left, its Rates.Second, and the rights that it needs, 0 for all it can get.
// In a shortage the first two are sums over a region.
type Request struct {
	Rights uint64
	Second uint64
	Need   uint64
}

// DonorState is a donor's own state: its rights left, Rates.Recent and
// Rates.Second.
type DonorState struct {
	Rights uint64
	Recent uint64
	Second uint64
}

// Donor decides on the requests that one daemon receives for one key. The zero
// value is ready for use.
type Donor struct {
	until int64 // No last call before.
}

// Transfer returns how many of its rights a daemon transfers to a regional peer
// that requests some; 0 is a refusal, which is sent too. The result is at most
// o.Rights and q.Need. Charge it to the donor's account before the reply
// exists.
//
// A donor without traffic transfers all but one right, so that its own next hit
// is admitted. It transfers its last right too if the requester has none, but
// at most once in 20 ms: otherwise two daemons at the end of their region's
// share would pass it back and forth. A donor with traffic transfers its
// surplus.
func (d *Donor) Transfer(now int64, o DonorState, q Request) uint64 {
	need := q.Need
	if need == 0 {
		need = math.MaxUint64
	}
	switch {
	case o.Second != 0 || o.Recent != 0:
		return min(need, surplus(o, q))
	case o.Rights == 1 && q.Rights == 0 && !waiting(now, d.until, lastCallMS):
		d.until = sat.AddInt(now, lastCallMS)
		return 1
	}
	return min(need, sat.Sub(o.Rights, 1))
}

// surplus returns the rights that a donor with traffic has beyond its part of
// the rights of both, by their traffic. The part is rounded up and at least the
// hits of its last two ticks. Less than an eighth of both is not worth a
// message, and counts as 0.
func surplus(o DonorState, q Request) uint64 {
	hits := sat.Sub(o.Rights, max(part(o, q), o.Recent))
	if hits < sat.MulDivUp(sat.Add(o.Rights, q.Rights), 1, 8) {
		return 0
	}
	return hits
}

// part returns the donor's part of the rights of both, by traffic and rounded
// up. It is less exact where the sum of the traffic overflows.
func part(o DonorState, q Request) uint64 {
	own, other := o.Second, max(q.Second, 1)
	if own+other < own { // Halve both to fit, in the donor's favor.
		own, other = own-own/2, other/2
	}
	return sat.MulDivUp(sat.Add(o.Rights, q.Rights), own, own+other)
}
