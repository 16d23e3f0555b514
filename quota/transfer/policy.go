package transfer

import (
	"math"

	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// Policy holds the properties of a rule and of the path between two regions
// that decide transfers between these regions.
type Policy struct {
	// Entity is set if a key stands for one caller, which usually stays in one
	// region: its rights move earlier, and less of them stays behind. All
	// regions hit an aggregate key at once.
	Entity   bool
	Budget   rules.PPM
	WindowMS int64 // Window length of the rule.
	DelayMS  int64 // One-way network delay, without any wait for a frame.
}

// Open reports whether transfers can arrive in time. They cannot where the
// round trip exceeds a quarter of the window: late transfers would make the
// rights oscillate.
func (t Policy) Open() bool {
	return t.WindowMS > 0 && span(t.DelayMS) <= span(t.WindowMS)/8
}

// Region is the state of a region as an aggregator knows or estimates it: sums
// over the daemons of the region.
type Region struct {
	Allotment uint64 // Rights at the start of the window.
	Available uint64 // Rights left.
	Offered   uint64 // Offered hits per second, see Rate.
}

// Short reports whether the region would exhaust its rights before a transfer
// could arrive: within a round trip and two ticks at its offered rate. For an
// entity key it also reports true once half of the allotment is used. A region
// without traffic is never short.
func (t Policy) Short(r Region) bool {
	if !t.Open() || r.Offered == 0 {
		return false
	}
	if r.Available < demand(r.Offered, t.responseMS()) {
		return true
	}
	return t.Entity && r.Available <= r.Allotment-min(r.Allotment, r.Available)
}

// Need returns how many rights a region that is short requests of the others:
// the rest of the limit (room = limit - estimate) without the rights it has.
// For an aggregate key the result is at most 5/4 of the expected demand in the
// remaining leftMS milliseconds of the window. The extra quarter saves a second
// round trip where traffic is slightly higher than expected, and it equals the
// margin that donors keep for themselves.
func (t Policy) Need(leftMS int64, r Region, room uint64) uint64 {
	if !t.Entity {
		use := demand(r.Offered, leftMS)
		room = min(room, sat.Add(use, use/4))
	}
	return sat.Sub(room, r.Available)
}

// Spare returns how many rights a region can transfer to others: its rights
// beyond both 5/4 of the demand until it could get rights back, and a reserve
// that shrinks with the rest of the window.
func (t Policy) Spare(leftMS int64, r Region) uint64 {
	if !t.Open() {
		return 0
	}
	horizon := min(max(leftMS, 0), 4*t.delay()+2*TickMS)
	keep := sat.Add(demand(r.Offered, horizon), demand(r.Offered, horizon)/4)
	return sat.Sub(r.Available, max(keep, t.reserve(leftMS, r.Allotment)))
}

// reserve returns the rights that a region keeps for later traffic: 3/8 of the
// allotment of an aggregate key; of an entity key the budget's part of the
// allotment, at most 1/8. Both shrink in proportion to leftMS.
func (t Policy) reserve(leftMS int64, allotment uint64) uint64 {
	left := sat.MulDiv(allotment, min(span(leftMS), span(t.WindowMS)), span(t.WindowMS))
	if t.Entity {
		return sat.MulDiv(left, uint64(min(t.Budget, rules.Whole/8)), uint64(rules.Whole))
	}
	return sat.MulDiv(left, 3, 8)
}

// responseMS returns the time from a shortage to the arrival of transfers: one
// round trip, and one tick for each of the two aggregators to receive the
// counts of its region.
func (t Policy) responseMS() int64 {
	return 2*t.delay() + 2*TickMS
}

// delay returns the delay, at least 0 and small enough for sums of a few.
func (t Policy) delay() int64 {
	return min(max(t.DelayMS, 0), math.MaxInt64/16)
}

// Transfer returns how many rights a region transfers to a region that needs
// them: a part of the need in proportion to its spare among the spare of all
// donor regions. others is the estimated spare of the other donors. For an
// entity key without traffic here it is the whole spare: the caller has moved.
func (t Policy) Transfer(need uint64, r Region, spare, others uint64) uint64 {
	if need == 0 {
		return 0
	}
	if t.Entity && r.Offered == 0 {
		return spare
	}
	return min(spare, sat.MulDivUp(need, spare, max(sat.Add(spare, others), 1)))
}

// demand returns the hits that arrive in ms milliseconds at a rate in hits per
// second, rounded up.
func demand(perSecond uint64, ms int64) uint64 {
	return sat.MulDivUp(perSecond, span(ms), 1000)
}
