package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// Merge takes n hits into a cell that others counted under a label, late or
// at once. log is the key's log for sliding_log. What a cell no longer holds
// is left out: a window before the previous one, a stamp that has left the
// window.
//
// A bucket takes late hits as if they came now, as a debt if need be, whatever
// the limit's carry_debt: forgiven, they would be minted once per replica
// (Patrol's lost update, theory of token buckets by merged counts). Where the
// bucket stood full in between, up to what it minted meanwhile is held against
// the callers once.
func (f Fold) Merge(c *Cell, log *Log, now, window int64, n uint64) {
	switch f.Algorithm {
	case rules.SlidingLog:
		f.mergeLog(c, log, now, window, n)
	case rules.TokenBucket, rules.LeakyBucket:
		f.Adopt(c, now)
		f.stepBucket(c, now)
		f.fillUp(c, now)
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
		if !f.CarryDebt {
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
	log.expire(c, now-f.Window())
	if room := ^uint64(0) - c.Count; n > room {
		n = room
	}
	c.Window = max(c.Window, at)
	c.Count += n
	log.insert(at, n)
}

// Roll moves a window's cell to the window that now is in.
func (f Fold) Roll(c *Cell, now int64) {
	w := f.roll(c, now)
	*c = Cell{Window: w.start, Count: w.count, Prev: w.prev, Carry: w.debt}
}

// Rolled reports whether now is beyond the window of a cell.
func (f Fold) Rolled(c *Cell, now int64) bool { return now >= c.Window+f.Window() }

// Shared is the label under which hits at now are counted for others, its
// length, and for how long beyond its end it matters, in milliseconds.
//
// Windows share their own labels and logs a label a millisecond. Buckets share
// labels of at least bucketWindow, in which an untouched bucket fills: what
// others are told of is only added to their meters, so how the time is cut
// does not change a sum.
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

// bucketWindow is the shortest label of a bucket's shared counts, milliseconds.
const bucketWindow = 2_000

// Fold makes a bucket's cell of the counts of labels, told in ascending order.
// Nobody knows when in its label a hit came: as if at the end, then a bucket
// without debt holds no more of them than fit; as if at the start, then all but
// what was minted since are still in use. The greater of the two is.
func (f Fold) replay(c *Cell, now, start, end int64, n uint64) {
	at := max(min(end, now), c.Window)
	f.Adopt(c, at)
	least := sat.Sub(micro(n), f.minted(uint64(f.Requests), min(start, at), at))
	f.stepBucket(c, at)
	room := sat.Sub(f.Capacity(), tokensUp(f.meter(c, at)))
	f.fillUp(c, at)
	c.Count += min(n, room)
	if held := f.meter(c, at); held < least {
		c.Count = min(sat.Add(c.Count, tokensUp(least-held)), maxMicro/microPerToken)
	}
}
