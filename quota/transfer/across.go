package transfer

import (
	"math"

	"github.com/georld/rld/internal/sat"
)

// Budget is an overage budget in parts per million of the limit.
type Budget uint64

// million is a Budget of 100 %.
const million Budget = 1_000_000

// Policy is what two regions know of a rule and of the way between them, or a
// region of its rule and the longest way it takes gifts over.
type Policy struct {
	Kind     Kind
	Budget   Budget
	WindowMS int64 // Of the rule: how long rights of a label can be used.
	DelayMS  int64 // One way over the network, without any wait for a frame.
}

// Open reports whether gifts can be of use: not where the round trip exceeds a
// quarter of the window, since they would come too late and swing.
func (t Policy) Open() bool {
	return t.WindowMS > 0 && span(t.DelayMS) <= span(t.WindowMS)/8
}

// Region is what an aggregator knows, or believes, of a region: sums over its
// daemons.
type Region struct {
	Allotment uint64 // Share of the region in this label.
	Available uint64 // Rights left.
	Offered   uint64 // Hits a second, see Rate.
}

// Short reports whether the region would run dry before gifts came: within a
// round trip and two ticks at its offered rate. An entity region is hungry when
// half of its base is gone. A silent region never is.
func (t Policy) Short(r Region) bool {
	if !t.Open() || r.Offered == 0 {
		return false
	}
	if r.Available < demand(r.Offered, t.answer()) {
		return true
	}
	return t.Kind == Entity && r.Available <= r.Allotment-min(r.Allotment, r.Available)
}

// Need returns how many rights a region that is hungry needs of others: what
// the limit leaves (room = limit - estimate) and, of an aggregate key, no more
// than 5/4 of what its rate would use in the time left of the label; without
// what it has. The quarter spares a second round trip where traffic is a bit
// more than expected, and matches what donors keep for themselves.
func (t Policy) Need(leftMS int64, r Region, room uint64) uint64 {
	if t.Kind == Aggregate {
		use := demand(r.Offered, leftMS)
		room = min(room, sat.Add(use, use/4))
	}
	return sat.Sub(room, r.Available)
}

// Spare returns how many rights a region can do without: what exceeds both 5/4
// of what its traffic needs until it could get rights back, and a floor, which
// melts with the label: of an aggregate key 3/8 of its base, of an entity key
// the budget's part of its base and at most 1/8. A silent region of an entity
// key keeps nothing but the floor, see Transfer.
func (t Policy) Spare(leftMS int64, r Region) uint64 {
	if !t.Open() {
		return 0
	}
	horizon := min(max(leftMS, 0), 4*t.delay()+2*TickMS)
	keep := sat.Add(demand(r.Offered, horizon), demand(r.Offered, horizon)/4)
	return sat.Sub(r.Available, max(keep, t.reserve(leftMS, r.Allotment)))
}

// reserve returns what a region keeps of its base for traffic yet to come.
func (t Policy) reserve(leftMS int64, base uint64) uint64 {
	left := sat.MulDiv(base, min(span(leftMS), span(t.WindowMS)), span(t.WindowMS))
	if t.Kind == Entity {
		return sat.MulDiv(left, uint64(min(t.Budget, million/8)), uint64(million))
	}
	return sat.MulDiv(left, 3, 8)
}

// answer returns the time from hunger to gifts: a round trip, and a tick each for
// the aggregators to hear of their daemons' counts.
func (t Policy) answer() int64 {
	return 2*t.delay() + 2*TickMS
}

// delay returns the delay, 0 or more and so that sums of a few do not overflow.
func (t Policy) delay() int64 {
	return min(max(t.DelayMS, 0), math.MaxInt64/16)
}

// Transfer returns what a region gives of its spare to one that published need: the
// part of the need that its spare is of the spare of all regions but the hungry
// one, itself included. A silent region of an entity key gives all its spare:
// the caller has moved. others is the sum over the other donors, as believed.
func (t Policy) Transfer(need uint64, r Region, spare, others uint64) uint64 {
	if need == 0 {
		return 0
	}
	if t.Kind == Entity && r.Offered == 0 {
		return spare
	}
	return min(spare, sat.MulDivUp(need, spare, max(sat.Add(spare, others), 1)))
}

// demand returns the hits that come in ms at a rate in hits a second, rounded
// up.
func demand(perSecond uint64, ms int64) uint64 {
	return sat.MulDivUp(perSecond, span(ms), 1000)
}
