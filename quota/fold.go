package quota

import "github.com/georld/rld/rules"

// Fold reads the counts of a key by the algorithm of one limit. It answers
// everything that depends on the algorithm, so that no other package has to
// know the algorithms. It is a view of the limit: it costs nothing to make and
// to copy, and is valid as long as the limit.
type Fold struct{ *rules.Limit }

// Of returns the fold of a limit.
func Of(l *rules.Limit) Fold { return Fold{l} }

// Windowed reports whether the hits are counted in windows that start at
// multiples of the window length: fixed and sliding windows.
func (f Fold) Windowed() bool {
	return f.Algorithm == rules.FixedWindow || f.Algorithm == rules.SlidingWindow
}

// Resets reports whether a window starts with the whole capacity: fixed
// windows.
func (f Fold) Resets() bool { return f.Algorithm == rules.FixedWindow }

// Weighted reports whether hits of the previous window still count in part:
// sliding windows.
func (f Fold) Weighted() bool { return f.Algorithm == rules.SlidingWindow }

// Stamped reports whether each hit counts for a window length from its own
// time on: logs. A key of such a limit needs a Log.
func (f Fold) Stamped() bool { return f.Algorithm == rules.SlidingLog }

// Drains reports whether used capacity comes back at a steady rate: buckets.
func (f Fold) Drains() bool { return f.Algorithm.Bucket() }

// Delays reports whether admitted requests may have to wait: leaky buckets.
func (f Fold) Delays() bool { return f.Algorithm == rules.LeakyBucket }

// ReportLength returns the length in milliseconds of the windows that usage is
// reported by: the limit's window, or that of a bucket's shared counts.
func (f Fold) ReportLength() int64 {
	if f.Drains() {
		_, length, _ := f.Shared(&Cell{}, 0)
		return length
	}
	return f.Window()
}

// Fits returns the hits that fit a reported window of a length in milliseconds:
// the limit, and of a bucket its burst and the refill in that time.
func (f Fold) Fits(length int64) uint64 {
	if !f.Drains() {
		return uint64(f.Requests)
	}
	return uint64(f.Burst) + uint64(f.Requests)*uint64(length)/uint64(f.Window())
}

// Estimable returns the starts of the first and the last window in which hits
// of other daemons are extrapolated, and the longest time for which they are,
// in milliseconds. Daemons whose clocks are ahead count in later windows
// already. ok is false for logs: their hits have no common windows.
func (f Fold) Estimable(c *Cell, now int64) (from, to, longest int64, ok bool) {
	switch {
	case f.Stamped():
		return 0, 0, 0, false
	case f.Drains():
		from, _, _ = f.Shared(c, now)
		return from, never, never, true
	}
	return c.Window, c.Window, max(0, now-c.Window), true
}

// RefillTime returns the time in milliseconds in which an empty bucket fills,
// 0 for other folds.
func (f Fold) RefillTime() int64 {
	if !f.Drains() {
		return 0
	}
	return f.drainTime(micro(f.Capacity()), 0)
}

// AllRights returns the rights of the world to one window, budget included.
func (f Fold) AllRights() Allotment {
	if f.Drains() {
		return Allotment{Amount: micro(f.TotalBurst()), Rate: micro(f.Total())}
	}
	return Allotment{Amount: f.Total()}
}

// Hits converts an amount of an Allotment to hits, rounded down.
func (f Fold) Hits(amount uint64) uint64 {
	if f.Drains() {
		return amount / microPerToken
	}
	return amount
}
