// Package prior predicts the load of a key at the start of a window, from that
// of the windows before: how many of the hits that fit are left to other
// daemons until their counts arrive.
//
// Without it, a daemon knows nothing of its peers at the start of a window, and
// admits the whole limit before the first counts arrive if a key is offered
// many times its limit. With it, a daemon admits its share of the limit
// meanwhile: its part of all offered hits. A prior ends with the first counts,
// and decides nothing that a daemon could not admit a little later.
//
// A prior is a prediction. It is used only where loads were steady: each daemon
// counts the windows in which it was offered far fewer hits than two windows
// before, or hits after none, and reports that with its load. All functions are
// pure; nothing here depends on a clock.
package prior

import (
	"math/bits"
	"time"
)

// Load is the hits that one or more daemons were offered in a window. Loads of
// different daemons can be added.
type Load struct {
	// Offered is the hits offered: admitted and denied ones.
	Offered uint64
	// Doubted is the part of Offered that is expected not to come again, at
	// most Offered.
	Doubted uint64
}

// MaxOffered bounds the hits of a load: sums of them do not overflow.
const MaxOffered = 1 << 40

// Bounded returns the load within its bounds, whoever reported it.
func (l Load) Bounded() Load {
	l.Offered = min(l.Offered, MaxOffered)
	l.Doubted = min(l.Doubted, l.Offered)
	return l
}

// Add returns the sum of two loads.
func (l Load) Add(o Load) Load { return Load{l.Offered + o.Offered, l.Doubted + o.Doubted}.Bounded() }

// Report is the load of a key in a window that is over.
type Report struct {
	Window int64 // start of the window, Unix milliseconds
	Load
}

// Own is the load of a key at the daemon itself. The zero value has none.
type Own struct {
	// Window is the start of the present window, Started the monotonic time of
	// its first hit here, Offered its hits so far.
	Window  int64
	Started time.Duration
	Offered uint64
	// Exhausted is set if hits were denied in the window, or the limit was used
	// up.
	Exhausted bool
	known     uint8     // windows that are complete, up to the age of a prediction
	before    [2]uint64 // offered in the windows before, the latest first
	length    int64     // of a window in milliseconds
	// seen is how many windows were predicted, missed how many of them were
	// not as predicted, in units: old ones count less.
	seen, missed uint32
}

const (
	// unit is one window in seen and missed, of which a window before counts
	// a hundredth less.
	unit   = 1 << 10
	forget = 100
	// age is the age of a prediction in windows: a window is over, and has been
	// reported, when the one after it ends.
	age = 2
	// leastSeen is how many windows must have been predicted before a load is
	// reported: of fewer, it is not known whether it is steady.
	leastSeen = 2*unit - unit/10
)

// Roll moves the load to a window of a length at its first hit. It returns the
// report of the window before, ok if the limit was used up in it and enough of
// them were seen. A window before the present one changes nothing.
func (o *Own) Roll(now time.Duration, window, length int64) (r Report, ok bool) {
	if window <= o.Window && length == o.length {
		return Report{}, false
	}
	if length != o.length || length <= 0 {
		*o = Own{Window: window, Started: now, length: length}
		return Report{}, false
	}
	r.Window, ok = o.Window, o.Exhausted
	gone := uint64(window-o.Window) / uint64(length)
	if gone == 0 || gone > age+1 { // 0: of another key with this hash
		*o = Own{Window: window, Started: now, length: length}
		return Report{}, false
	}
	o.complete(o.Offered)
	r.Load = Load{o.Offered, o.doubted(o.Offered)}.Bounded()
	for range gone - 1 {
		o.complete(0)
	}
	o.Window, o.Started, o.Offered, o.Exhausted = window, now, 0, false
	return r, ok && gone == 1 && o.seen >= leastSeen
}

// complete notes the hits that were offered in the next window.
func (o *Own) complete(offered uint64) {
	predicted := o.before[1]
	o.before = [2]uint64{offered, o.before[0]}
	if o.known < age {
		o.known++
		return
	}
	if predicted == 0 && offered == 0 {
		return
	}
	o.seen, o.missed = o.seen-o.seen/forget+unit, o.missed-o.missed/forget
	if predicted == 0 || offered < predicted/2 {
		o.missed += unit
	}
}

// doubted returns the part of hits that is expected not to come again: by the
// rule of succession, of Krichevsky and Trofimov.
func (o *Own) doubted(offered uint64) uint64 {
	offered = min(offered, MaxOffered)
	return min(offered, (offered*uint64(o.missed+unit/2)+uint64(o.seen))/uint64(o.seen+unit))
}

// in returns the hits offered in a window that is over: those of the oldest
// known one for an earlier one.
func (o *Own) in(window int64) uint64 {
	switch {
	case window >= o.Window:
		return o.Offered
	case window >= o.Window-o.length:
		return o.before[0]
	}
	return o.before[1]
}

// Question is what a prior is used for: a decision.
type Question struct {
	Now    time.Duration
	Window int64  // of the decision
	Length int64  // of a window in milliseconds
	Limit  uint64 // hits that fit a window
	Lag    time.Duration
	// MeanLag is the mean of Lag over the last seconds.
	MeanLag time.Duration
	// Draw is uniform over all numbers, the same for a daemon, key and window.
	// It rounds a share that is no whole number.
	Draw uint64
}

// Lags is how many lags after its first hit of a window, in halves, a daemon
// uses a prior: the counts of others arrive within one, and those of the first
// half of it are known then.
const Lags = 3

// maxRegret is the greatest expected loss for which a prior is used, as a part
// of a limit: its inverse.
const maxRegret = 200

// Share returns the hits that a daemon may admit before it knows the counts of
// the others: its part of the limit, by its own load and that of all others in
// a window that is over. ok is false where no prior is used: the others offer
// nothing, the daemon does not know its own load, it has had time to learn
// their counts, or what is expected to be denied without need is too much.
func (o *Own) Share(others Report, q *Question) (share uint64, ok bool) {
	if o.known < age || others.Offered == 0 || q.Length <= 0 || q.Length != o.length || q.Window < o.Window {
		return 0, false
	}
	if o.Settled(q) {
		return 0, false
	}
	if others.Window < q.Window-Oldest(q.Length, q.Lag) || others.Window >= q.Window {
		return 0, false
	}
	own := min(o.in(others.Window), MaxOffered)
	if q.Window == o.Window {
		own = max(own, min(o.Offered, MaxOffered))
	}
	all := others.Offered + own
	// A region that does not come strands its share for as long as the prior
	// is used, at most the whole window. That is expected of the mean lag: by
	// the present one, each late message would end the priors of loads that are
	// hardly steady enough, also within a window.
	length := min(q.Length, maxLength)
	part := min(Lags*max(0, min(q.MeanLag.Milliseconds(), maxLength)), 2*length)
	if productLess(2*uint64(length), all, maxRegret*uint64(part), others.Doubted) {
		return 0, false
	}
	hi, lo := bits.Mul64(q.Limit, own)
	share, rest := bits.Div64(hi, lo, all) // own < all, as others offered hits
	if fraction, _ := bits.Div64(rest, 0, all); fraction > q.Draw {
		share++
	}
	return share, true
}

// maxLength bounds windows and lags in milliseconds: products with them do not
// overflow.
const maxLength = 1 << 50

// productLess reports whether a * b is less than c * d.
func productLess(a, b, c, d uint64) bool {
	hi, lo := bits.Mul64(a, b)
	other, low := bits.Mul64(c, d)
	return hi < other || hi == other && lo < low
}

// maxLate bounds the windows that a report may be late.
const maxLate = 64

// Settled reports whether a daemon has had time to learn the counts of others
// since its first hit of the window.
func (o *Own) Settled(q *Question) bool {
	return q.Window == o.Window && 2*(q.Now-o.Started) > Lags*q.Lag
}

// Oldest returns how old the start of a window may be, in milliseconds, for its
// load to predict one that starts now: that of the last two windows that can be
// known with a lag.
func Oldest(length int64, lag time.Duration) int64 {
	length = max(1, min(length, maxLength))
	late := (Lags*max(0, min(lag.Milliseconds(), maxLength))/2 + length - 1) / length
	return (max(1, min(late, maxLate)) + age) * length
}
