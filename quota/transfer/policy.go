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
	// region: its rights move earlier, and less of them stays behind without
	// traffic. All regions hit an aggregate key at once.
	Entity   bool
	Budget   rules.PPM
	WindowMS int64 // Window length of the rule.
	DelayMS  int64 // One-way network delay, without any wait for a frame.
}

// briefDelayMS bounds the delay at which transfers inside a brief window are
// worth it, in milliseconds. The bursts that they are for last about half a
// second, and rights that arrive after a burst are lost to the others.
const briefDelayMS = 250

// Open reports whether transfers can arrive in time. They cannot where the
// round trip exceeds a quarter of the window, or half of a brief one: late
// transfers would make the rights oscillate.
func (t Policy) Open() bool {
	if t.WindowMS <= 0 {
		return false
	}
	delay, window := span(t.DelayMS), span(t.WindowMS)
	return delay <= window/8 || t.brief() && delay <= min(window/4, briefDelayMS)
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
// entity key it also reports true once half of the allotment is used and the
// rest is less than half of Ahead. A region without traffic is never short.
func (t Policy) Short(leftMS int64, r Region) bool {
	if !t.Open() || r.Offered == 0 {
		return false
	}
	if r.Available < demand(r.Offered, t.responseMS()) {
		return true
	}
	return t.Entity && early(r.Available, r.Allotment, Ahead(leftMS, r.Offered))
}

// aheadMS bounds the demand that rights are requested for, in milliseconds. The
// rate of a second says little about the rest of a day, and rights that a
// daemon holds without a use are lost with it.
const aheadMS = 10_000

// Ahead returns how many rights a daemon or region wants to have: 5/4 of the
// expected demand in the next ten seconds, or in the remaining leftMS
// milliseconds of the window if that is less. The extra quarter saves a second
// round trip where traffic is slightly higher than expected, and it equals the
// margin that donors keep for themselves.
func Ahead(leftMS int64, offered uint64) uint64 {
	use := demand(offered, min(leftMS, aheadMS))
	return sat.Add(use, use/4)
}

// Need returns how many rights a region that is short requests of the others:
// Ahead, and at most the rest of the limit (room = limit - estimate), without
// the rights that it has.
func (t Policy) Need(leftMS int64, r Region, room uint64) uint64 {
	return sat.Sub(min(room, Ahead(leftMS, r.Offered)), r.Available)
}

// Spare returns how many rights a region can transfer to others: its rights
// beyond both 5/4 of the demand until it could get rights back, and a reserve
// that shrinks with the rest of the window.
func (t Policy) Spare(leftMS int64, r Region) uint64 {
	if !t.Open() {
		return 0
	}
	return t.spare(leftMS, 4*t.delay()+2*TickMS, r)
}

// SpareToEnd is Spare where a region cannot get rights back before the window
// ends.
func (t Policy) SpareToEnd(leftMS int64, r Region) uint64 { return t.spare(leftMS, leftMS, r) }

// spare is Spare with 5/4 of the demand of horizon milliseconds.
func (t Policy) spare(leftMS, horizon int64, r Region) uint64 {
	horizon = min(max(leftMS, 0), horizon)
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

// early reports whether an entity key requests rights although those left last
// for a while: half of the held ones are used, and the rest is less than half
// of what the daemon or region wants to have. The second half keeps a steady
// caller from requesting rights with each hit.
func early(left, held, ahead uint64) bool {
	return left <= held-min(held, left) && left < ahead/2
}

// responseMS returns the time from a shortage to the arrival of transfers: one
// round trip, and one tick for each of the two aggregators to receive the
// counts of its region.
func (t Policy) responseMS() int64 {
	return 2*t.delay() + 2*TickMS
}

// recentMS returns the time in milliseconds over which a region's traffic is
// measured: a quarter of the window, at most a second. In windows of a second,
// the burst of a second ago is over.
func (t Policy) recentMS() int64 {
	return min(1000, max(2*TickMS, t.WindowMS/4))
}

// brief reports whether a second is more than a quarter of the window.
func (t Policy) brief() bool { return t.recentMS() < 1000 }

// pauseMS returns the time between two announcements of a shortage: until the
// transfers arrive. A brief window is over before an answer to the first one
// shows what is still lacking, and what donors keep in reserve shrinks in the
// meantime; so there it is a twentieth of the window, at least half a tick.
func (t Policy) pauseMS() int64 {
	if t.brief() {
		return min(t.responseMS(), max(TickMS/2, t.WindowMS/20))
	}
	return t.responseMS()
}

// delay returns the delay, at least 0 and small enough for sums of a few.
func (t Policy) delay() int64 {
	return min(max(t.DelayMS, 0), math.MaxInt64/16)
}

// Transfer returns how many rights a region transfers to a region that needs
// them: a part of the need in proportion to its spare among the spare of all
// donor regions. others is the estimated spare of the other donors. For an
// entity key with traffic here, it also keeps this region's part of the rights
// of both, as a donor inside a region does: otherwise each region in turn would
// take the rights of the others.
func (t Policy) Transfer(r Region, q Request, spare, others uint64) uint64 {
	if t.Entity && r.Offered > 0 {
		spare = min(spare, surplus(DonorState{Rights: r.Available, Second: r.Offered}, q))
	}
	if q.Need == 0 || spare == 0 {
		return 0
	}
	return min(spare, sat.MulDivUp(q.Need, spare, sat.Add(spare, others)))
}

// demand returns the hits that arrive in ms milliseconds at a rate in hits per
// second, rounded up.
func demand(perSecond uint64, ms int64) uint64 {
	return sat.MulDivUp(perSecond, span(ms), 1000)
}
