package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// Merge adds n hits of another daemon to a cell, counted in window, late or at
// once. log is the key's log if the fold is Stamped. Hits that the cell cannot
// hold any more are dropped: those of a window before the previous one, and
// stamps that have left the window.
//
// A bucket counts late hits as if they came now, as debt if needed, whatever
// the limit's carry_debt. If it forgave them, each replica would refill them
// once (the lost update of token buckets with merged counts). If the bucket was
// full in between, its refill of that time, at most, is held against the
// callers once.
func (f Fold) Merge(c *Cell, log *Log, now, window int64, n uint64) {
	switch f.Algorithm {
	case rules.SlidingLog:
		f.mergeLog(c, log, now, window, n)
	case rules.TokenBucket, rules.LeakyBucket:
		f.advanceBucket(c, now)
		c.Count = min(sat.Add(c.Count, n), maxMicro/microPerToken)
	default:
		f.mergeWindow(c, window, n)
	}
}

func (f Fold) mergeWindow(c *Cell, window int64, n uint64) {
	switch window {
	case c.Window:
		c.Count = sat.Add(c.Count, n)
	case c.Window - f.Window():
		was := c.Prev
		c.Prev = sat.Add(c.Prev, n)
		if !f.owes() {
			return
		}
		if c.Carry > 0 {
			c.Carry = sat.Add(c.Carry, n)
			return
		}
		limit := uint64(f.Requests)
		c.Carry = sat.Sub(c.Prev, limit) - sat.Sub(was, limit)
	}
}

func (f Fold) mergeLog(c *Cell, log *Log, now, at int64, n uint64) {
	if log == nil || n == 0 || at <= now-f.Window() {
		return
	}
	log.insert(at, f.countStamp(c, log, now, at, n))
}

// Bound lowers the hits in use of a bucket to at most n: a daemon that knows of
// the same hits, but in time, has no more in use.
func (f Fold) Bound(c *Cell, now int64, n uint64) {
	f.advanceBucket(c, now)
	if over := sat.Sub(f.meter(c, now), micro(n)); over > 0 {
		was := c.Carry
		c.Carry = sat.Sub(was, over)
		c.Count = sat.Sub(c.Count, tokensUp(sat.Sub(over, was)))
	}
}

// Roll moves a window's cell to the window that contains now.
func (f Fold) Roll(c *Cell, now int64) {
	w := f.roll(c, now)
	*c = Cell{Window: w.start, Count: w.count, Prev: w.prev, Carry: w.debt}
}

// Rolled reports whether now is after the window of a cell.
func (f Fold) Rolled(c *Cell, now int64) bool { return now >= c.Window+f.Window() }

// Shared returns the window that hits at now are replicated in, its length, and
// the time for which it matters beyond its end, in milliseconds.
//
// Windows share their own windows, logs a window per millisecond. Buckets share
// windows of at least bucketWindow in which an untouched bucket fills.
// Replicated hits are only added to meters, so the cut of the time does not
// change a sum.
func (f Fold) Shared(c *Cell, now int64) (window, width, carry int64) {
	switch f.Algorithm {
	case rules.SlidingLog:
		return now, 1, f.Window()
	case rules.TokenBucket, rules.LeakyBucket:
		fill := f.drainTime(micro(f.Capacity()), 0)
		width = max(bucketWindow, fill)
		return now - now%width, width, fill
	}
	return c.Window, f.Window(), f.Expires(c) - sat.AddInt(c.Window, f.Window())
}

// bucketWindow is the shortest window of a bucket's shared counts, in
// milliseconds.
const bucketWindow = 2_000

// replay adds the hits of one window to a bucket's cell. Windows come in
// ascending order. The times of the hits in their window are not known. If all
// came at the end, then a bucket without debt holds no more of them than fit.
// If all came at the start, then all but the refill since are still in use. The
// cell gets the greater of the two.
func (f Fold) replay(c *Cell, now, start, end int64, n uint64) {
	at := max(min(end, now), c.Window)
	f.advanceBucket(c, at)
	least := sat.Sub(micro(n), f.minted(uint64(f.Requests), min(start, at), at))
	c.Count += min(n, f.roomOf(c, at))
	if held := f.meter(c, at); held < least {
		c.Count = min(sat.Add(c.Count, tokensUp(least-held)), maxMicro/microPerToken)
	}
}
