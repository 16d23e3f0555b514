package session

import (
	"container/list"
	"math"
	"math/bits"
	"time"

	"github.com/georld/rld/node"
)

// bucket is one bucket of a stream.
//
// Invariant: the hits of its assignments are charged, and the client has at
// most those left that are not in used.
type bucket struct {
	id    ID
	order int           // of its first report
	place *list.Element // in Session.asked
	due   bool          // in Session.due
	gone  bool          // it was abandoned

	assigned []assignment // charged and perhaps not over, the oldest first
	serial   uint32       // of the latest assignment, also of one without tokens
	kind     Kind         // of the latest one
	until    time.Duration
	since    uint64 // hits reported as allowed since the latest one was sent

	reported   time.Duration // time of the last report
	asked      time.Duration // time of the last one with requests, or of the first one
	late       time.Duration // how late the last report is at most, beside its time on the way
	steady     int           // reports in their time, the last ones
	reports    int
	idle       int    // reports without a request, the last ones
	seen       uint64 // requests in the last report that had some
	gap        time.Duration
	renewAt    time.Duration // when an assignment is due without a report, 0 for never
	unassigned uint64        // hits allowed without an assignment, to be charged
}

// assignment is a number of tokens that were charged and assigned.
type assignment struct {
	hits uint64
	// used is the reported requests that it may have paid for: at least those
	// that it did. paid is those of them that no other one is taken to pay for.
	used, paid uint64
	serial     uint32
	until      time.Duration // its end at the client, without the time on the way
	receipt    node.Receipt
}

// report records the usage of a report.
func (b *bucket) report(now time.Duration, u *Usage) {
	if b.reports > 0 {
		b.delay(now-b.reported, u.Elapsed)
	}
	seen := add(u.Allowed, u.Denied)
	switch {
	case seen == 0:
		b.idle++
	default:
		b.idle, b.seen, b.asked = 0, seen, now
		if b.gap = u.Elapsed; b.reports > 0 {
			b.gap = max(now-b.reported, b.gap, time.Second)
		}
	}
	b.reports, b.reported, b.since = b.reports+1, now, add(b.since, u.Allowed)
	b.unassigned = add(b.unassigned, b.spend(u.Allowed))
}

// delay estimates how late a report is that comes a gap after the one before.
// Reports that waited, for a daemon that was stopped or for a connection, come
// together: the first one late by nearly as much as they waited, and each other
// one less late by the time that it states.
func (b *bucket) delay(gap, stated time.Duration) {
	if extra := gap - stated; extra < 0 || extra > onTime {
		b.late, b.steady = max(0, b.late+extra), 0
	} else if b.steady++; b.steady >= onTimeReports {
		b.late = 0
	}
}

// spend attributes reported requests to assignments, and returns how many no
// assignment can have paid for.
//
// A report does not name the assignment. Within a window it makes no difference
// which of them is used first, as all hits come back in that window. In another
// window it does: so each window counts all of the requests as its own.
func (b *bucket) spend(n uint64) (excess uint64) {
	left, paid := n, uint64(0)
	for i := range b.assigned {
		a := &b.assigned[i]
		if i > 0 && b.assigned[i-1].receipt.Window != a.receipt.Window {
			left = n
		}
		took := min(left, a.hits-a.used)
		a.used, left = a.used+took, left-took

		took = min(n-paid, a.hits-a.paid)
		a.paid, paid = a.paid+took, paid+took
	}
	return n - paid
}

// over removes the assignments that were over at the client when it sent the
// last report, and returns them. All of their usage is reported.
func (b *bucket) over() (out []assignment) {
	kept := b.assigned[:0]
	for _, a := range b.assigned {
		if b.reported-b.late >= a.until+margin+onTime {
			out = append(out, a)
		} else {
			kept = append(kept, a)
		}
	}
	b.assigned = kept
	return out
}

// latest returns the assignment of tokens that the client has, nil for none.
func (b *bucket) latest() *assignment {
	if n := len(b.assigned); b.kind == Tokens && n > 0 && b.assigned[n-1].serial == b.serial {
		return &b.assigned[n-1]
	}
	return nil
}

// left returns the tokens that the client has at least, if it has had the
// latest assignment since the report before the last one.
func (b *bucket) left(now time.Duration) uint64 {
	a := b.latest()
	if a == nil || now >= a.until {
		return 0
	}
	return a.hits - min(a.hits, b.since)
}

// need returns the hits that the client needs in a time: those of its last
// report with requests, and half as many more for a load that grows. Each
// report without requests since then halves them.
func (b *bucket) need(in time.Duration, limit uint64) uint64 {
	return max(1, b.needed(in, limit)>>b.idle)
}

func (b *bucket) needed(in time.Duration, limit uint64) uint64 {
	if b.gap <= 0 { // the rate is not known
		return max(1, limit/firstPart)
	}
	high, low := bits.Mul64(b.seen, uint64(in))
	if high >= uint64(b.gap) {
		return math.MaxUint32
	}
	n, _ := bits.Div64(high, low, uint64(b.gap))
	return min(add(n, n/2)+1, math.MaxUint32)
}

// add returns a sum, MaxUint64 instead of more.
func add(a, b uint64) uint64 {
	if sum, carry := bits.Add64(a, b, 0); carry == 0 {
		return sum
	}
	return math.MaxUint64
}
