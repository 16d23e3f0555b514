package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// Rights are amounts of a label that a daemon may admit without telling anyone:
// its base, which all daemons derive alike so that the bases of the world sum to
// at most what a rule allows, and what others gave it of theirs. A Account is what it
// used of them. The gate reads nothing but the row of the daemon itself, and so
// holds whatever is late, lost or cut off (escrow, O'Neil, TODS 1986; bounded
// counters, Balegas et al., SRDS 2015).

// Account is what this daemon used of its rights to one key. The zero value has used
// nothing. It is not safe for concurrent use.
//
// Of windows it holds, for the label and the one before, what was used
// (admitted, and given to others) and what came back (refunded, and received).
// Of buckets it is a meter of what is in use, which drains at the daemon's own
// rate. Of logs it is the daemon's own stamps.
type Account struct {
	Window             int64  // windows: start of the label; buckets: when the meter was read
	Used, Back         uint64 // buckets: Used is micro-tokens in use
	PrevUsed, PrevBack uint64 // windows: of the label before; buckets: PrevUsed is the rate drained at
	stamps             Cell   // logs
	log                Log
}

// Allotment is what a daemon holds of a label before any gift.
type Allotment struct {
	// Amount is hits, of a bucket micro-tokens.
	Amount uint64
	// Rate is, of a bucket, the micro-tokens that come back in a window.
	Rate uint64
}

// Tokens turns hits of a bucket into the unit of Allotment: so that a share of a few
// hits is not rounded to none.
func Tokens(hits uint64) uint64 { return micro(hits) }

// RightsWindow returns the start of the label whose base bounds hits at now, and
// how far the history of the algorithm reaches back from it, both in
// milliseconds. Windows have their own labels. Buckets and logs, which have no
// labels that all share, are cut into steps of a sixteenth of their history.
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

// Left returns how many hits of its rights a daemon may still admit or give at
// now.
func (r *Account) Left(l *rules.Limit, b Allotment, now int64) uint64 {
	switch l.Algorithm {
	case rules.TokenBucket, rules.LeakyBucket:
		return sat.Sub(b.Amount, r.meter(l, b, now)) / microPerToken
	case rules.SlidingLog:
		r.log.expire(&r.stamps, now-l.Window())
		return sat.Sub(b.Amount, r.stamps.Count)
	}
	r.roll(l, now)
	used := r.Used
	if l.Algorithm == rules.SlidingWindow {
		// What came back of the label before lowers what was used there, and
		// no more: a surplus is gone with its label.
		width := l.Window()
		before := sat.Sub(r.PrevUsed, r.PrevBack)
		used = sat.Add(used, sat.MulDivUp(before, uint64(r.Window+width-now), uint64(width)))
	}
	return sat.Sub(sat.Add(b.Amount, r.Back), used)
}

// Spend counts n hits as used, whether they are there or not.
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

// Return takes back n hits of a label, refunded or given by others: of windows
// alone, and only of the label and the one before.
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

// Recall makes a row count hits of a label that it was not there for. Labels
// come in ascending order, those of windows are the row's and the one before.
// Of a bucket nobody knows when in the label its hits came: as if at the end,
// which holds most.
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

// Wait returns the time until rights that are all used come back by themselves,
// in milliseconds: those of a window with the next label.
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

// roll moves a window's row to the label of now.
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

// meter reads a bucket's meter at now. It drains at the lesser of the rates that
// held at the last look and hold now: a rate that rose in between counts from
// here on. That it may have been lower still in between is paid for by the time
// that a raise waits for, see RightsWindow.
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
