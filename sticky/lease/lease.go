package lease

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// lease is the rights to a key that owners granted this daemon, of one window.
type lease struct {
	window   int64 // of buckets and logs the instant at which they end
	until    int64 // the rights end then, in Unix milliseconds
	former   int64 // the window before
	sources  []source
	used     uint64
	reserved uint64 // of the rights left, set aside for waiters
	requests []request

	burst    rateMeter // of burstInterval
	calls    rateMeter // of prefetchInterval
	lastCall uint64    // hits of the latest call

	keep       uint64        // unused rights that may be kept, by the owner's last answer
	prefetched bool          // the last grant was for more than was needed
	resends    uint8         // how often the latest return is to be sent again
	returnedAt time.Duration // when it was sent last, monotonic

	answered  time.Duration // when the owner last answered for the window, monotonic; 0 for never
	report    quota.Report  // of that answer
	roundTrip time.Duration // of requests, smoothed
	aheadAt   time.Duration // when rights were last requested ahead of need
	usedAt    time.Duration // when rights were last used

	denied      uint64        // the least hits that were denied, 0 for none
	deniedUntil time.Duration // when to ask for them again
	denials     uint8         // since the last grant
}

// source is an owner and its grants in the window.
type source struct {
	owner           crdt.Incarnation
	total, returned uint64
	round           uint64 // of its ballot
}

// request is a request without an answer yet.
type request struct {
	id    uint64
	owner crdt.Incarnation
	at    time.Duration
}

const (
	// maxSources bounds the owners that one window has grants of.
	maxSources = 8
	// answerFresh is how old an owner's report may be for calls that only ask
	// for the state.
	answerFresh = time.Second
	// maxDenial bounds how long a denial is believed: returned rights may have
	// made room.
	maxDenial = time.Second
)

// granted returns the rights granted and not returned.
func (x *lease) granted() uint64 {
	sum := uint64(0)
	for i := range x.sources {
		sum = sat.Add(sum, x.sources[i].total-x.sources[i].returned)
	}
	return sum
}

// held returns the rights that are not used and may be used now.
func (x *lease) held(l *rules.Limit, now int64) uint64 {
	if now >= x.until || quota.Of(l).Windowed() && now-now%l.Window() != x.window {
		return 0
	}
	sum := x.granted()
	return sum - min(sum, x.used)
}

// left returns the rights that are held and not set aside.
func (x *lease) left(l *rules.Limit, now int64) uint64 {
	held := x.held(l, now)
	return held - min(held, x.reserved)
}

// begin moves the lease to a later window, without any rights.
func (x *lease) begin(window, until int64) {
	x.former, x.window, x.until = x.window, window, until
	x.sources, x.used, x.reserved = x.sources[:0], 0, 0
	x.answered, x.denied, x.keep, x.prefetched, x.resends = 0, 0, 0, false, 0
}

// source returns the entry of an owner, nil if there are too many.
func (x *lease) source(owner crdt.Incarnation) *source {
	for i := range x.sources {
		if x.sources[i].owner == owner {
			return &x.sources[i]
		}
	}
	if len(x.sources) == maxSources {
		return nil
	}
	x.sources = append(x.sources, source{owner: owner})
	return &x.sources[len(x.sources)-1]
}

// called records the hits of a call.
func (x *lease) called(mono time.Duration, hits uint64) {
	x.burst.add(mono, burstInterval, hits)
	x.calls.add(mono, prefetchInterval, hits)
	x.lastCall = hits
}

// deny records that hits were denied: until they may fit, and longer with each
// denial in a row.
func (x *lease) deny(mono time.Duration, hits uint64) {
	wait := max(time.Duration(x.report.Retry)*time.Millisecond, time.Millisecond<<x.denials)
	if x.report.Never {
		wait = maxDenial
	}
	if x.denied == 0 || hits < x.denied || mono >= x.deniedUntil {
		x.denied = hits
	}
	x.deniedUntil = mono + min(wait, maxDenial)
}

// denies reports whether as many hits were denied and need not be requested
// yet.
func (x *lease) denies(hits uint64, mono time.Duration) bool {
	return x.denied > 0 && hits >= x.denied && mono < x.deniedUntil
}

// underWay reports whether a request is not answered yet.
func (x *lease) underWay(id uint64) bool {
	return slices.ContainsFunc(x.requests, func(q request) bool { return q.id == id })
}

// over reports whether nothing of the lease can matter any more.
func (x *lease) over(now int64) bool { return now >= x.until+keptAfterEnd }

// keptAfterEnd is how long after its end a lease is kept, in milliseconds: a
// late grant adds to it.
const keptAfterEnd = 5_000
