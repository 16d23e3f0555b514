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
