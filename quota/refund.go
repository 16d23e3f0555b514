package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// RefundEnd is the instant in Unix milliseconds from which hits that were
// counted under a label (see Shared) cannot be given back any more: they weigh
// nothing then, or nobody knows how much of them still does.
//
// Windows give back while the label stands; sliding ones, and those with
// carry_debt, also in the label after, in which its hits still weigh or are
// owed. Logs give back until the stamp leaves the window, buckets while the
// label stands.
func (f Fold) RefundEnd(window int64) int64 {
	width := f.Window()
	switch {
	case f.Algorithm == rules.SlidingLog:
		return sat.AddInt(window, width)
	case f.Algorithm.Bucket():
		_, width, _ = f.Shared(&Cell{}, 0)
	case f.Algorithm == rules.SlidingWindow, f.CarryDebt:
		return sat.AddInt(sat.AddInt(window, width), width)
	}
	return sat.AddInt(window, width)
}

// Refundable reports whether hits that were counted under a label can be given
// back at now.
func (f Fold) Refundable(now, window int64) bool {
	if f.Algorithm.Bucket() { // a limit of another rate may cut labels otherwise
		is, _, _ := f.Shared(&Cell{}, now)
		return window == is
	}
	return now < f.RefundEnd(window)
}

// Held returns the hits that a window's cell holds of a label.
func (f Fold) Held(c *Cell, window int64) uint64 {
	switch window {
	case c.Window:
		return c.Count
	case c.Window - f.Window():
		return c.Prev
	}
	return 0
}

// Withdraw takes n hits off a cell that were counted under a label and are given
// back, here or elsewhere. log is the key's log for sliding_log. It is the one
// way in which the count of a label falls. What the cell holds no longer is
// left out, as Absorb leaves it out. The caller sees to it that nothing is
// withdrawn that the cell was never told of.
//
// Windows and what they owe become what they were without the hits, exactly.
// A log too, but for hits that a full or a faster clock's log counts under a
// later stamp than their own: they go from the first stamps that may hold them,
// and so no sooner than they should.
//
// A bucket is approximate: its meter falls by n, to 0 at the least. Nobody knows
// how much of the hits has drained since, or would have, had they not stood in
// the way of a refill that was lost for it. So an emptier bucket may show for up
// to n hits. Over any time in which refunds are taken off when they come, it
// still admits at most its burst and what it mints.
func (f Fold) Withdraw(c *Cell, log *Log, now, window int64, n uint64) {
	switch {
	case n == 0:
	case f.Algorithm == rules.SlidingLog:
		f.withdrawLog(c, log, now, window, n)
	case f.Algorithm.Bucket():
		f.withdrawBucket(c, now, window, n)
	default:
		f.withdrawWindow(c, window, n)
	}
}

func (f Fold) withdrawWindow(c *Cell, window int64, n uint64) {
	switch window {
	case c.Window:
		c.Count = sat.Sub(c.Count, n)
	case c.Window - f.Window():
		// What is owed is what the label went over, and what was owed before:
		// down to 0 it falls hit by hit.
		c.Carry = sat.Sub(c.Carry, min(n, c.Prev))
		c.Prev = sat.Sub(c.Prev, n)
	}
}

func (f Fold) withdrawLog(c *Cell, log *Log, now, at int64, n uint64) {
	if log == nil || at <= now-f.Window() {
		return
	}
	log.expire(c, now-f.Window())
	i := log.size
	for i > 0 && log.at(i-1).at >= at {
		i--
	}
	for ; i < log.size && n > 0; i++ {
		s := log.at(i)
		took := min(s.n, n)
		s.n, n = s.n-took, n-took
		c.Count = sat.Sub(c.Count, took)
	}
}

func (f Fold) withdrawBucket(c *Cell, now, window int64, n uint64) {
	if !f.Refundable(now, window) {
		return
	}
	f.Adopt(c, now)
	f.stepBucket(c, now)
	f.fillUp(c, now)
	mint := f.minted(c.Prev, c.Window, now)
	c.Carry, c.Count = sat.Add(mint, sat.Sub(f.meter(c, now), micro(n))), 0
}
