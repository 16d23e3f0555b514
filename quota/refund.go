package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// RefundEnd returns the time, in Unix milliseconds, from which hits that were
// counted in a window (see Shared) cannot be refunded any more: they count no
// longer, or their remaining weight is not known.
//
// Windows refund while the window stands. Sliding windows, and windows with
// carry_debt, also refund in the next one, in which the hits still weigh or are
// owed. Logs refund until the stamp leaves the window, buckets while the window
// of Shared stands.
func (f Fold) RefundEnd(window int64) int64 {
	end := sat.AddInt(window, f.ReportLength())
	if f.Windowed() && (f.Weighted() || f.CarryDebt) {
		end = sat.AddInt(end, f.Window())
	}
	return end
}

// Refundable reports whether hits that were counted in a window can be refunded
// at now.
func (f Fold) Refundable(now, window int64) bool {
	if f.Algorithm.Bucket() { // a limit of another rate may cut windows otherwise
		is, _, _ := f.Shared(&Cell{}, now)
		return window == is
	}
	return now < f.RefundEnd(window)
}

// Held returns the hits of one window in a window's cell.
func (f Fold) Held(c *Cell, window int64) uint64 {
	switch window {
	case c.Window:
		return c.Count
	case c.Window - f.Window():
		return c.Prev
	}
	return 0
}

// Withdraw subtracts n hits from a cell that were counted in a window and are
// refunded, here or elsewhere. log is the key's log if the fold is Stamped. It
// is the only way in which the count of a window falls. Hits that the cell does
// not hold any more are ignored, as in Merge. The caller must not withdraw hits
// that the cell never counted.
//
// Windows, and their debt, become exactly as they were without the hits. So
// does a log, except for hits that a full log, or one with a faster clock,
// counts under a later stamp than their own: they are subtracted from the first
// stamps that may hold them, and so never too early.
//
// A bucket is approximate. Its meter falls by n, to 0 at least. The part of the
// hits that has drained since is not known, nor the refill that was lost
// because of them. So the bucket may appear emptier by up to n hits. Over any
// time in which refunds are subtracted when they arrive, it still admits at
// most its burst and its refill.
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
		// The debt is the excess of the window, and the debt before it. It
		// falls hit by hit, to 0.
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
	f.advanceBucket(c, now)
	mint := f.minted(c.Prev, c.Window, now)
	c.Carry, c.Count = sat.Add(mint, sat.Sub(f.meter(c, now), micro(n))), 0
}
