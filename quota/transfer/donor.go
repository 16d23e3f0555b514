package transfer

import (
	"github.com/georld/rld/internal/sat"
)

// lastCallMS is the least time between two last calls of a donor.
const lastCallMS = 20

// Request is the state of a requester that its request carries: its rights left
// and its Rates.Second.
type Request struct {
	Rights uint64
	Second uint64
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
// o.Rights. Charge it to the donor's account before the reply exists.
//
// A donor without traffic transfers all but one right. It transfers that one
// too on a last call, when the requester has none, but at most once in 20 ms:
// otherwise two daemons at the end of their region's share would pass the last
// right back and forth. A donor with traffic splits the rights of both by their
// traffic. It keeps its own part, rounded up and at least the hits of its last
// two ticks, and transfers the rest unless that is less than an eighth of both,
// which is not worth a message.
func (d *Donor) Transfer(now int64, o DonorState, q Request) uint64 {
	if o.Second == 0 && o.Recent == 0 {
		if q.Rights == 0 && o.Rights > 0 && !waiting(now, d.until, lastCallMS) {
			d.until = sat.AddInt(now, lastCallMS)
			return o.Rights
		}
		return sat.Sub(o.Rights, 1)
	}
	hits := sat.Sub(o.Rights, max(part(o, q), o.Recent))
	if hits == 0 || hits < sat.MulDivUp(sat.Add(o.Rights, q.Rights), 1, 8) {
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
