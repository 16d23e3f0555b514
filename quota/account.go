package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// Rights are hits of a window that a daemon may admit on its own. They are its
// allotment and transfers from others. All daemons derive their allotments
// alike, so that those of the world sum to at most the limit with its budget.
// An Account is the used part. The rights gate reads only the account of its
// own daemon, so it holds however late, lost or partitioned messages are
// (escrow, O'Neil, TODS 1986; bounded counters, Balegas et al., SRDS 2015).

// Account is the usage of a daemon's rights to one key. The zero value has no
// usage. It is not safe for concurrent use.
//
// For windows it holds the used hits (admitted, and transferred to others) and
// the returned ones (refunded, and received), of the current window and of the
// one before. For buckets it is a meter of the usage that drains at the
// daemon's own rate. For logs it holds the daemon's own stamps.
type Account struct {
	Window             int64  // windows: start of the window; buckets: when the meter was read
	Used, Back         uint64 // buckets: Used is micro-tokens in use
	PrevUsed, PrevBack uint64 // windows: of the window before; buckets: PrevUsed is the rate drained at
	stamps             Cell   // logs
	log                Log
}

// Allotment is the rights that a daemon starts a window with.
type Allotment struct {
	// Amount is in hits, for a bucket in micro-tokens.
	Amount uint64
	// Rate is the micro-tokens that a bucket refills per window.
	Rate uint64
}

// RightsWindow returns the start of the window whose allotment bounds hits at
// now, and how far the history of the fold reaches back from it, in
// milliseconds. Windows have their own windows. Buckets and logs have no common
// windows; their time is cut into steps of a sixteenth of their history.
func (f Fold) RightsWindow(now int64) (window, carry int64) {
	switch f.Algorithm {
	case rules.TokenBucket, rules.LeakyBucket:
		step := f.Step()
		return now - now%step, f.drainTime(micro(f.Capacity()), 0)
	case rules.SlidingLog:
		step := max(minStep, f.Window()/16)
		return now - now%step, f.Window()
	case rules.SlidingWindow:
		return now - now%f.Window(), f.Window()
	}
	return now - now%f.Window(), 0
}

// Left returns the hits of its rights that a daemon may still admit or transfer
// at now: none before the window of the account.
func (r *Account) Left(l *rules.Limit, b Allotment, now int64) uint64 {
	switch l.Algorithm {
	case rules.TokenBucket, rules.LeakyBucket:
		return sat.Sub(b.Amount, r.meter(l, b, now)) / microPerToken
	case rules.SlidingLog:
		r.log.expire(&r.stamps, now-l.Window())
		return sat.Sub(b.Amount, r.stamps.Count)
	}
	r.roll(l, now)
	if now < r.Window { // use that a former run recorded, whose clock was ahead
		return 0
	}
	used := r.Used
	if l.Algorithm == rules.SlidingWindow {
		// Returned hits of the previous window lower the usage there, and no
		// more: a surplus ends with its window.
		width := l.Window()
		before := sat.Sub(r.PrevUsed, r.PrevBack)
		used = sat.Add(used, sat.MulDivUp(before, uint64(r.Window+width-now), uint64(width)))
	}
	return sat.Sub(sat.Add(b.Amount, r.Back), used)
}

// Spend counts n hits as used, whether rights for them are left or not.
func (r *Account) Spend(l *rules.Limit, b Allotment, now int64, n uint64) {
	switch l.Algorithm {
	case rules.TokenBucket, rules.LeakyBucket:
		r.Used = min(sat.Add(r.meter(l, b, now), micro(n)), maxMicro)
	case rules.SlidingLog:
		Of(l).chargeLog(&r.stamps, &r.log, now, n)
	default:
		r.roll(l, now)
		r.Used = sat.Add(r.Used, n)
	}
}

// Return adds n hits to the rights of a window, refunded or received from
// others. Only windows have such rights, and only in the current window and the
// one before.
func (r *Account) Return(l *rules.Limit, window int64, n uint64) {
	if l.Algorithm != rules.FixedWindow && l.Algorithm != rules.SlidingWindow {
		return
	}
	switch window {
	case r.Window:
		r.Back = sat.Add(r.Back, n)
	case r.Window - l.Window():
		r.PrevBack = sat.Add(r.PrevBack, n)
	}
}

// Recall adds hits of a window that were counted before the account existed.
// Windows come in ascending order; those of a window's account are the current
// one and the one before. The times of a bucket's hits are not known: they
// count as if at the end, which leaves the greatest usage.
func (r *Account) Recall(l *rules.Limit, b Allotment, now, window, end int64, n uint64) {
	switch l.Algorithm {
	case rules.TokenBucket, rules.LeakyBucket:
		r.Spend(l, b, max(r.Window, min(end, now)), n)
	case rules.SlidingLog:
		if window > now-l.Window() {
			Of(l).chargeLog(&r.stamps, &r.log, window, n)
		}
	default:
		switch r.roll(l, now); window {
		case r.Window:
			r.Used = sat.Add(r.Used, n)
		case r.Window - l.Window():
			r.PrevUsed = sat.Add(r.PrevUsed, n)
		}
	}
}

// Wait returns the time in milliseconds until used-up rights come back by
// themselves: of a window, until the next window.
func (r *Account) Wait(l *rules.Limit, b Allotment, now int64, n uint64) int64 {
	switch l.Algorithm {
	case rules.TokenBucket, rules.LeakyBucket:
		if micro(n) > b.Amount || b.Rate == 0 {
			return l.Window()
		}
		over := sat.Sub(sat.Add(r.meter(l, b, now), micro(n)), b.Amount)
		return max(1, millis(sat.MulDivUp(over, uint64(l.Window()), b.Rate)))
	case rules.SlidingLog:
		return max(1, Of(l).resetLog(&r.stamps, now))
	}
	return max(1, l.Window()-now%l.Window())
}

// roll moves a window's account to the window of now.
func (r *Account) roll(l *rules.Limit, now int64) {
	width := l.Window()
	if now < r.Window+width {
		return
	}
	start := now - now%width
	if start-r.Window == width {
		r.PrevUsed, r.PrevBack = r.Used, r.Back
	} else {
		r.PrevUsed, r.PrevBack = 0, 0
	}
	r.Window, r.Used, r.Back = start, 0, 0
}

// meter returns a bucket's usage at now. It drains at the lesser of the rate at
// the previous reading and the present rate, so a rate that rose in between
// counts from now on. That it may have been lower in between is covered by the
// delay of a raise, see RightsWindow.
func (r *Account) meter(l *rules.Limit, b Allotment, now int64) uint64 {
	if now > r.Window {
		rate := b.Rate
		if r.Window > 0 {
			rate = min(rate, r.PrevUsed)
		}
		r.Used = sat.Sub(r.Used, mintedAt(rate, l.Window(), r.Window, now))
		r.Window = now
	}
	r.PrevUsed = b.Rate
	return r.Used
}
