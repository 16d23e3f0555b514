package lease

import (
	"slices"
	"time"

	"github.com/georld/rld/internal/sat"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// The pace of requests.
const (
	// maxRequests bounds the requests under way for one entry.
	maxRequests = 16
	// leastTimeout is the least time after which a request counts as lost.
	leastTimeout = 20 * time.Millisecond
	// leastAhead is the least time between two requests ahead of need.
	leastAhead = 10 * time.Millisecond
	// maxWithin bounds how long a grant is asked to stay usable.
	maxWithin = time.Second
)

// request asks the owner for the rights that waiters need and no request under
// way is for, and ahead of need for those that the current rate will. It
// returns false if there is no owner to ask.
func (t *Table) request(e *entry, r *rules.Rule) bool {
	l := t.limit(r, e.reserve)
	owner, _ := t.ownerOf(e.id.key, e.rule, e.regional())
	if l == nil || owner.Incarnation == 0 || owner.Self {
		return false
	}
	within, open := t.env.Owners.Reach(owner.Incarnation)
	x := &e.lease
	x.dropLost(t.at.Mono, owner.Incarnation, within)
	if len(x.requests) >= maxRequests || !x.mayRequest(t.at.Mono) {
		return true // the next request covers the waiters
	}
	want, need, looks := e.uncovered()
	if !open && want == 0 && !looks {
		return false // the breaker let calls pass that wait, and no others
	}
	extra, prefetch := x.extra(t.at.Mono), x.prefetch(l, t.at.Mono, t.cfg.Prefetch)
	prefetch -= min(prefetch, x.left(l, t.at.Millis))
	if want == 0 && !looks {
		if extra+prefetch == 0 || !t.runsOut(x, l) || len(x.requests) > 0 || t.at.Mono-x.aheadAt < max(x.roundTrip, leastAhead) {
			return true
		}
		x.aheadAt = t.at.Mono
	}
	t.requestID++
	q := t.state(e, r.Limit, owner.Incarnation)
	q.ID, q.Want, q.Need, q.Extra, q.Prefetch = t.requestID, want, need, extra, prefetch
	q.Within = uint32(min(max(within, 0), maxWithin) / time.Millisecond)
	e.cover(q.ID)
	x.requests = append(x.requests, request{q.ID, owner.Incarnation, t.at.Mono})
	m := t.to(owner.Incarnation)
	m.Requests = append(m.Requests, q)
	t.stats.Requests++
	t.activate(e)
	return true
}

// mayRequest spaces the requests under way: the third comes a millisecond after
// the second, each later one after twice the time.
func (x *lease) mayRequest(mono time.Duration) bool {
	n := len(x.requests)
	if x.denials > 0 { // few rights are left: one request at a time
		return n == 0
	}
	return n < 2 || mono-x.requests[n-1].at >= time.Millisecond<<min(n-2, 5)
}

// state returns a request that wants nothing: it names the entry, and the
// rights returned to the owner in the current window.
func (t *Table) state(e *entry, l *rules.Limit, to crdt.Incarnation) sticky.LeaseRequest {
	x := &e.lease
	q := sticky.LeaseRequest{Lessee: t.env.Self, Key: e.id.key, Rule: e.id.rule, Reserve: e.reserve, Window: x.window}
	if quota.Of(l).Windowed() {
		q.Window = t.at.Millis - t.at.Millis%l.Window()
	}
	if q.Window == x.window {
		for _, s := range x.sources {
			if s.owner == to {
				q.Owner, q.Returned = to, s.returned
			}
		}
	}
	return q
}

// dropLost forgets requests that were not answered in time, or that another
// daemon than the owner got; 0 stands for any owner.
func (x *lease) dropLost(mono time.Duration, owner crdt.Incarnation, within time.Duration) {
	timeout := within
	if x.roundTrip > 0 {
		timeout = min(timeout, max(leastTimeout, 2*x.roundTrip+10*time.Millisecond))
	}
	x.requests = slices.DeleteFunc(x.requests, func(q request) bool {
		return mono-q.at >= timeout || owner != 0 && owner != q.owner
	})
}

// spendLease uses rights of the lease, and requests more before none are left.
func (t *Table) spendLease(e *entry, h *Hit) {
	x := &e.lease
	x.used = sat.Add(x.used, h.N)
	x.usedAt = t.at.Mono
	if len(x.requests) == 0 && t.at.Mono >= x.deniedUntil && t.runsOut(x, h.Rule.Limit) {
		t.request(e, h.Rule)
	}
}
