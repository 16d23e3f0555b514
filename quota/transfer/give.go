package transfer

import "github.com/georld/rld/internal/sat"

// lastCallMS is the least time between two last calls of a donor.
const lastCallMS = 20

// Ask is what an ask carries of the asker: his rights left and his Rates.Second.
type Ask struct {
	Rights uint64
	Second uint64
}

// DonorState is what a donor knows of himself: his rights left, Rates.Recent and
// Rates.Second.
type DonorState struct {
	Rights uint64
	Recent uint64
	Second uint64
}

// Donor is one daemon's giving of one key under one label. The zero value is
// ready.
type Donor struct {
	until int64 // No last call before.
}

// Give returns how many of its rights a daemon gives to a sibling that asks; 0
// is an answer too and is sent. The gift is at most o.Rights and must be charged
// before the answer exists.
//
// A silent donor gives all but one right, and on a last call, when the asker is
// at 0, that one too; at most once in 20 ms, so that two daemons at the end of
// their region's share do not pass the last right to and fro. A donor with
// traffic splits the rights of both by their traffic, keeps his part rounded up
// and no less than he was offered in the last two ticks, and gives the rest
// unless it is less than an eighth of both, which is not worth a message.
func (g *Donor) Give(now int64, o DonorState, a Ask) uint64 {
	if o.Second == 0 && o.Recent == 0 {
		if a.Rights == 0 && o.Rights > 0 && !waiting(now, g.until, lastCallMS) {
			g.until = sat.AddInt(now, lastCallMS)
			return o.Rights
		}
		return sat.Sub(o.Rights, 1)
	}
	gift := sat.Sub(o.Rights, max(part(o, a), o.Recent))
	if gift == 0 || gift < eighth(o.Rights, a.Rights) {
		return 0
	}
	return gift
}

// part returns the donor's part of the rights of both, by traffic and rounded
// up. Where sums overflow it is exact enough: the gift stays within his rights.
func part(o DonorState, a Ask) uint64 {
	mine, his := o.Second, max(a.Second, 1)
	if mine+his < mine { // Halve what does not fit, in the donor's favor.
		mine, his = mine-mine/2, his/2
	}
	return sat.MulDivUp(sat.Add(o.Rights, a.Rights), mine, mine+his)
}

// eighth returns the least gift worth a message: (a+b)/8 rounded up.
func eighth(a, b uint64) uint64 {
	return sat.MulDivUp(sat.Add(a, b), 1, 8)
}
