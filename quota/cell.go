package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// Cell is what this replica's slot holds of one key. The zero value is a key
// that was never charged. A Cell is owned by its node and not safe for
// concurrent use.
//
// Invariants: Window never decreases; Count, and Prev of a window, only grow
// while their label stands, and so does Carry. The one exception is a bucket
// whose rate changed, see Adopt.
type Cell struct {
	// Window is the start of the current window or grid step in Unix
	// milliseconds. sliding_log: the instant of the newest stamp.
	Window int64
	// Count is the hits charged under Window (sliding_log: under all stamps
	// that still count).
	Count uint64
	// Prev is the hits charged under the label before (windows). Buckets: the
	// requests a window that the meter drains at, 0 in an untouched cell.
	Prev uint64
	// Carry is what dropped labels left behind. Windows with carry_debt: the
	// hits still to be paid back. Buckets: the opening level, micro-tokens in
	// use at Window without those of Count; it is only raised while Window
	// stands.
	Carry uint64
}

// Charge charges n hits at now, whether they fit or not, and returns false
// when a full log had to count them under a later instant than their own.
// log is the key's log for sliding_log, and unused otherwise.
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

// Report is what a caller is told of a key beside the verdict. Times are
// milliseconds from now.
type Report struct {
	// Remaining is the hits that would still fit now.
	Remaining uint64
	// Reset is the time until the whole capacity is free if nothing more is
	// charged; for a fixed window the time until it ends.
	Reset int64
	// Retry is the time until n hits fit if nothing else is charged, 0 when
	// they fit now or never will.
	Retry int64
	// Never says that n hits are more than the limit ever holds.
	Never bool
}

// Describe reports on a key as it stands at now, for a caller that asked
// for n hits. more is hits that others are estimated to have been granted
// beside those of the cell.
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
		w := f.roll(c, now)
		taken = w.used(now)
		r.Reset = w.reset(now)
	}
	taken = sat.Add(taken, more)
	r.Remaining = sat.Sub(limit, taken) // what is taken is rounded up
	if sat.Add(taken, n) <= limit {
		return r
	}
	if r.Never = n > limit; !r.Never {
		// At least a millisecond: what was estimated may turn out otherwise.
		r.Retry = max(1, f.retry(c, log, now, n))
	}
	return r
}

// Delay returns how long a leaky bucket holds a request back that is charged
// at now behind ahead others of its call: the time until the queue in front
// of it is empty, in milliseconds rounded up. 0 for every other algorithm.
func (f Fold) Delay(c *Cell, now int64, ahead uint64) int64 {
	if f.Algorithm != rules.LeakyBucket {
		return 0
	}
	return f.drainTime(sat.Add(f.meter(c, now), micro(ahead)), now)
}

// Expires returns the instant from which the cell can no longer matter: a
// key without it would be answered the same.
func (f Fold) Expires(c *Cell) int64 {
	switch f.Algorithm {
	case rules.SlidingLog:
		return sat.AddInt(c.Window, f.Window())
	case rules.TokenBucket, rules.LeakyBucket:
		return sat.AddInt(c.Window, f.drainTime(sat.Add(c.Carry, micro(c.Count)), c.Window))
	default:
		return f.expiresWindow(c)
	}
}

// Used returns the hits that count at now, rounded up: n more may be charged where
// they and these do not exceed Capacity. now is the wall part of the HLC in Unix
// milliseconds, log the key's log for sliding_log, which expired stamps leave.
func (f Fold) Used(c *Cell, log *Log, now int64) uint64 {
	switch f.Algorithm {
	case rules.SlidingLog:
		log.expire(c, now-f.Window())
		return c.Count
	case rules.TokenBucket, rules.LeakyBucket:
		return tokensUp(f.meter(c, now))
	default:
		return f.roll(c, now).used(now)
	}
}

func (f Fold) retry(c *Cell, log *Log, now int64, n uint64) int64 {
	switch f.Algorithm {
	case rules.SlidingLog:
		return f.retryLog(c, log, now, n)
	case rules.TokenBucket, rules.LeakyBucket:
		return f.retryBucket(c, now, n)
	default:
		return f.retryWindow(c, now, n)
	}
}

// Capacity is the number of hits that fit an untouched key.
func (f Fold) Capacity() uint64 {
	if f.Algorithm.Bucket() && f.Requests > 0 {
		return uint64(f.Burst)
	}
	return uint64(f.Requests)
}
