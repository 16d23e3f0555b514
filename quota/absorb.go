package quota

import "github.com/georld/rld/rules"

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
func Merge(l *rules.Limit, c *Cell, log *Log, now, window int64, n uint64) {
	switch l.Algorithm {
	case rules.SlidingLog:
		absorbLog(l, c, log, now, window, n)
	case rules.TokenBucket, rules.LeakyBucket:
		Adopt(l, c, now)
		stepBucket(l, c, now)
		fillUp(l, c, now)
		c.Count = min(addSat(c.Count, n), maxMicro/microPerToken)
	default:
		absorbWindow(l, c, window, n)
	}
}

func absorbWindow(l *rules.Limit, c *Cell, window int64, n uint64) {
	switch window {
	case c.Window:
		c.Count = addSat(c.Count, n)
	case c.Window - l.Window():
		was := c.Prev
		c.Prev = addSat(c.Prev, n)
		if !l.CarryDebt {
			return
		}
		if c.Carry > 0 {
			c.Carry = addSat(c.Carry, n)
			return
		}
		limit := uint64(l.Requests)
		c.Carry = subFloor(c.Prev, limit) - subFloor(was, limit)
	}
}

func absorbLog(l *rules.Limit, c *Cell, log *Log, now, at int64, n uint64) {
	if log == nil || n == 0 || at <= now-l.Window() {
		return
	}
	log.expire(c, now-l.Window())
	if room := ^uint64(0) - c.Count; n > room {
		n = room
	}
	c.Window = max(c.Window, at)
	c.Count += n
	log.insert(at, n)
}

// Roll moves a window's cell to the window that now is in.
func Roll(l *rules.Limit, c *Cell, now int64) {
	w := roll(l, c, now)
	*c = Cell{Window: w.start, Count: w.count, Prev: w.prev, Carry: w.debt}
}

// Rolled reports whether now is beyond the window of a cell.
func Rolled(l *rules.Limit, c *Cell, now int64) bool { return now >= c.Window+l.Window() }

// Shared is the label under which hits at now are counted for others, its
// length, and for how long beyond its end it matters, in milliseconds.
//
// Windows share their own labels and logs a label a millisecond. Buckets share
// labels of at least bucketWindow, in which an untouched bucket fills: what
// others are told of is only added to their meters, so how the time is cut
// does not change a sum.
func Shared(l *rules.Limit, c *Cell, now int64) (window, width, carry int64) {
	switch l.Algorithm {
	case rules.SlidingLog:
		return now, 1, l.Window()
	case rules.TokenBucket, rules.LeakyBucket:
		fill := drainTime(l, micro(Capacity(l)), 0)
		width = max(bucketWindow, fill)
		return now - now%width, width, fill
	}
	return c.Window, l.Window(), Expires(l, c) - later(c.Window, l.Window())
}

// bucketWindow is the shortest label of a bucket's shared counts, milliseconds.
const bucketWindow = 2_000

// Fold makes a bucket's cell of the counts of labels, told in ascending order.
// Nobody knows when in its label a hit came: as if at the end, then a bucket
// without debt holds no more of them than fit; as if at the start, then all but
// what was minted since are still in use. The greater of the two is.
func Fold(l *rules.Limit, c *Cell, now, start, end int64, n uint64) {
	at := max(min(end, now), c.Window)
	Adopt(l, c, at)
	least := subFloor(micro(n), minted(l, uint64(l.Requests), min(start, at), at))
	stepBucket(l, c, at)
	room := subFloor(Capacity(l), tokensUp(meter(l, c, at)))
	fillUp(l, c, at)
	c.Count += min(n, room)
	if held := meter(l, c, at); held < least {
		c.Count = min(addSat(c.Count, tokensUp(least-held)), maxMicro/microPerToken)
	}
}
