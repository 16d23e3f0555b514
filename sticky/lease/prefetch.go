package lease

import (
	"time"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// A lease may hold more rights than its waiters need, for two reasons:
//
//   - Extra rights serve a key that is requested all the time until the next
//     grant can arrive. They go back when the hits end.
//   - Prefetched rights serve a key that is requested from time to time, so
//     that most calls need no round trip. They are a small part of the rights
//     left, so that hardly anybody is denied for them, and of fixed windows
//     only: those of a bucket cannot be returned, and those of a log or sliding
//     window count for a window after they end.

const (
	// extraFor is how long extra rights last beyond two round trips.
	extraFor = 50 * time.Millisecond
	// prefetchPart is the part of the rights left that all lessees keep
	// together: one in so many.
	prefetchPart = 64
)

// extra returns how many rights are used in two round trips and extraFor.
func (x *lease) extra(mono time.Duration) uint64 { return x.burst.within(mono, 2*x.roundTrip+extraFor) }

// prefetch returns how many rights are worth keeping: as many as are used in
// prefetchInterval or a shorter window, without those of the call at hand, at
// most most. Fewer than a call uses are worth nothing.
func (x *lease) prefetch(l *rules.Limit, mono time.Duration, most uint64) uint64 {
	if !quota.Of(l).Resets() {
		return 0
	}
	n := min(x.calls.recent(mono, prefetchInterval), 1<<32)
	if w, interval := uint64(l.Window()), uint64(prefetchInterval.Milliseconds()); w < interval {
		n = n * w / interval
	}
	if n = min(n-min(n, x.lastCall), most); n < x.lastCall {
		return 0
	}
	return n
}

// kept returns how many unused rights are not returned.
func (t *Table) kept(x *lease, l *rules.Limit) uint64 {
	return min(x.prefetch(l, t.at.Mono, t.cfg.Prefetch), x.keep)
}

// runsOut reports whether the rights left hardly last until a grant can arrive,
// or, of prefetched ones, not for another call.
func (t *Table) runsOut(x *lease, l *rules.Limit) bool {
	left := x.left(l, t.at.Millis)
	return left < x.burst.within(t.at.Mono, x.roundTrip+extraFor/2) ||
		x.prefetched && left < max(x.lastCall, 1) && x.prefetch(l, t.at.Mono, t.cfg.Prefetch) > 0
}
