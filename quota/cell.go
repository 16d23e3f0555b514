package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// Cell is the usage of one key as a replica knows it. The zero value is a key
// without hits. The node that owns a Cell guards it; it is not safe for
// concurrent use.
//
// Invariants: Window never decreases. Count only grows while Window stands, and
// so do Carry and, for windows, Prev. The one exception is a bucket whose rate
// changed, see Adopt.
type Cell struct {
	// Window is the start of the current window or grid step, in Unix
	// milliseconds. Of a log it is the time of the newest stamp.
	Window int64
	// Count is the hits charged in Window. Of a log it is the hits of all
	// stamps that still count.
	Count uint64
	// Prev is the hits of the previous window. Of a bucket it is the requests
	// per window that the meter drains at, 0 in an untouched cell.
	Prev uint64
	// Carry is the remainder of older windows. Of a window with carry_debt it
	// is the hits still to be paid back. Of a bucket it is the opening level:
	// the micro-tokens in use at Window without those of Count; it only grows
	// while Window stands.
	Carry uint64
}

// Charge charges n hits at now, whether they fit or not. It returns false if a
// full log had to count them under a later time than their own. log is the
// key's log if the fold is Stamped, and unused otherwise.
func (f Fold) Charge(c *Cell, log *Log, now int64, n uint64) bool {
	switch f.Algorithm {
	case rules.SlidingLog:
		return f.chargeLog(c, log, now, n)
	case rules.TokenBucket, rules.LeakyBucket:
		f.chargeBucket(c, now, n)
	default:
		f.chargeWindow(c, now, n)
	}
	return true
}

// Report is the state of a key for a caller. Times are milliseconds from now.
type Report struct {
	// Remaining is the hits that would still fit now.
	Remaining uint64
	// Reset is the time until the whole capacity is free if nothing more is
	// charged. For a fixed window it is the time until the window ends.
	Reset int64
	// Retry is the time until n hits fit if nothing else is charged. It is 0 if
	// they fit now or never will.
	Retry int64
	// Never is set if n hits exceed the capacity of the limit.
	Never bool
}

// Describe reports on a key at now, for a caller that asked for n hits. more is
// the estimated hits of other daemons beside those of the cell.
func (f Fold) Describe(c *Cell, log *Log, now int64, more, n uint64) Report {
	limit, taken := f.Capacity(), uint64(0)
	var r Report
	switch f.Algorithm {
	case rules.SlidingLog:
		taken = f.Used(c, log, now)
		r.Reset = f.resetLog(c, now)
	case rules.TokenBucket, rules.LeakyBucket:
		inUse := f.meter(c, now)
		taken = tokensUp(inUse)
		r.Reset = f.drainTime(inUse, now)
	default:
		if end := c.Window + f.Window(); now < end && f.Resets() && !f.CarryDebt {
			taken, r.Reset = sat.Add(c.Count, c.Carry), end-now
			break
		}
		w := f.roll(c, now)
		taken = w.used(now)
		r.Reset = w.reset(now)
	}
	taken = sat.Add(taken, more)
	r.Remaining = sat.Sub(limit, taken) // taken is rounded up
	if sat.Add(taken, n) <= limit {
		return r
	}
	if r.Never = n > limit; !r.Never {
		// At least a millisecond, since an estimate may be too high.
		r.Retry = max(1, f.retry(c, log, now, n))
	}
	return r
}

// Delay returns the time in milliseconds, rounded up, for which a leaky bucket
// holds back a request that is charged at now behind ahead other hits of its
// call: until the queue in front of it is empty. It is 0 for every other fold.
func (f Fold) Delay(c *Cell, now int64, ahead uint64) int64 {
	if f.Algorithm != rules.LeakyBucket {
		return 0
	}
	return f.drainTime(sat.Add(f.meter(c, now), micro(ahead)), now)
}

// Expires returns the time from which the cell can no longer matter: without
// it, every answer about the key is the same.
func (f Fold) Expires(c *Cell) int64 {
	switch f.Algorithm {
	case rules.SlidingLog:
		return sat.AddInt(c.Window, f.Window())
	case rules.TokenBucket, rules.LeakyBucket:
		return sat.AddInt(c.Window, f.drainTime(sat.Add(c.Carry, micro(c.Count)), c.Window))
	default:
		return sat.AddInt(sat.AddInt(c.Window, f.Window()), f.after(c.Count, sat.Add(c.Carry, c.Count)))
	}
}

// Used returns the hits that count at now, rounded up. n more fit if they and
// these do not exceed Capacity. now is the wall part of the hybrid clock, in
// Unix milliseconds. log is the key's log if the fold is Stamped; expired
// stamps leave it.
func (f Fold) Used(c *Cell, log *Log, now int64) uint64 {
	switch f.Algorithm {
	case rules.SlidingLog:
		log.expire(c, now-f.Window())
		return c.Count
	case rules.TokenBucket, rules.LeakyBucket:
		return tokensUp(f.meter(c, now))
	case rules.FixedWindow:
		if now < c.Window+f.Window() {
			return sat.Add(c.Count, c.Carry)
		}
	}
	return f.roll(c, now).used(now)
}

// retry returns the time until n hits fit, for n up to the capacity.
func (f Fold) retry(c *Cell, log *Log, now int64, n uint64) int64 {
	switch f.Algorithm {
	case rules.SlidingLog:
		return f.retryLog(c, log, now, n)
	case rules.TokenBucket, rules.LeakyBucket:
		return f.drainTime(sat.Sub(f.meter(c, now), micro(f.Capacity()-n)), now)
	default:
		return f.retryWindow(c, now, n)
	}
}

// Capacity returns the number of hits that fit an untouched key.
func (f Fold) Capacity() uint64 {
	if f.Algorithm.Bucket() && f.Requests > 0 {
		return uint64(f.Burst)
	}
	return uint64(f.Requests)
}
