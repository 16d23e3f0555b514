package lease

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
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

// Request asks the owner for the rights that a call waits for: the verdict of
// its hits, probed at the same instant, is Pending. The rights are set aside
// for the ticket, which is the caller's number for the call and not 0, until
// the hits are spent or the ticket is canceled. The caller probes again when
// Ready returns the ticket, or, with one more in Hit.Failed, after
// Answer.Within.
func (t *Table) Request(at Now, h *Hit, a *Answer, ticket uint64) {
	t.at = at
	e := t.open(entryKey(h.Key, a.reserve), h.Rule, a.reserve)
	if e == nil || len(e.waiters) >= maxWaiters {
		t.answered = append(t.answered, ticket)
		return
	}
	t.stats.Waited++
	hits := h.need()
	if h.Peek {
		hits = 0
	}
	w := e.waiter(ticket)
	if w != nil && w.state != waiting {
		e.remove(ticket)
		w = nil
	}
	if w == nil {
		e.waiters = append(e.waiters, waiter{ticket: ticket})
		w = &e.waiters[len(e.waiters)-1]
	}
	if w.hits = max(w.hits, hits); w.request != 0 && e.lease.underWay(w.request) {
		return
	}
	t.activate(e)
	e.lease.called(t.at.Mono, hits)
	if a.self {
		if v := t.env.Owners.Routing(); v != nil {
			t.own(e)
			t.serve(e, h.Rule, v)
		}
	} else if !t.request(e, h.Rule) {
		t.answer(w, unanswered)
	}
}

// request asks the owner for the rights that waiters need and no request under
// way is for, and ahead of need for those that the current rate will. It
// returns false if there is no owner to ask.
func (t *Table) request(e *entry, r *rules.Rule) bool {
	l := t.limit(r, e.reserve)
	if l == nil {
		return false
	}
	owner, _ := t.ownerOf(e.id.key, e.rule, e.regional(), l)
	if owner.Incarnation == 0 || owner.Self {
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
	q.Within = uint32(usableFor(l, within, 2*x.roundTrip) / time.Millisecond)
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

// onGrant handles the answer of an owner. It ends the request and adds the
// grant to the lease. Then it sets rights aside for waiters in their order, or
// denies those that the grant denies. It returns false for an answer to reject.
func (t *Table) onGrant(from crdt.Incarnation, g *sticky.LeaseGrant) bool {
	e, r := t.grantedTo(from, g)
	if e == nil {
		return false
	}
	t.activate(e)
	x, l := &e.lease, r.Limit
	x.settle(t.at.Mono, g.ID)
	if g.Reason != sticky.NoReason {
		t.unanswered(e, r, g)
		return true
	}
	if !t.merge(e, l, g) {
		return false
	}
	x.denials = min(x.denials+1, 7)
	if !g.Denied {
		x.denials, x.denied = 0, 0
	}
	for i := range e.waiters {
		w := &e.waiters[i]
		switch {
		case w.state != waiting:
		case w.hits <= x.left(l, t.at.Millis):
			w.byOwner, w.window, w.report = false, x.window, x.report
			x.reserved += w.hits
			t.answer(w, granted)
		case g.Denied && w.first != 0 && w.first <= g.ID:
			w.report = x.report
			x.deny(t.at.Mono, w.hits)
			t.answer(w, denied)
		}
	}
	x.prefetched = x.left(l, t.at.Millis) > 0
	if !g.Denied && g.Remaining == 0 && g.Retry > 0 { // these were the last
		x.deny(t.at.Mono, 1)
	}
	t.request(e, r)
	return true
}

// grantedTo returns the entry and the rule that an answer is for. The entry is
// nil if there is none, or if the sender cannot be its owner.
func (t *Table) grantedTo(from crdt.Incarnation, g *sticky.LeaseGrant) (*entry, *rules.Rule) {
	r, v := t.set.FindShared(g.Rule), t.env.Owners.Routing()
	if g.Owner != from || g.Owner == 0 || r == nil || v == nil ||
		!v.Candidate(g.Key, uint64(r.ID), g.Reserve || r.Limit.HomeInRegion(), g.Owner) {
		return nil, nil
	}
	e := t.entries[idOf(g.Key, r, g.Reserve)]
	if e == nil || e.reserve != g.Reserve || t.ruleOf(e) == nil {
		return nil, nil
	}
	return e, r
}

// settle ends a request that was answered, and those before it.
func (x *lease) settle(mono time.Duration, id uint64) {
	for _, q := range x.requests {
		if q.id == id {
			trip := mono - q.at
			if x.roundTrip == 0 {
				x.roundTrip = trip
			}
			x.roundTrip += (trip - x.roundTrip) / 8
		}
	}
	x.requests = slices.DeleteFunc(x.requests, func(q request) bool { return q.id <= id })
}

// merge adds a grant to the lease. It returns false for a grant of a window
// that is over or not near, and for one of more than the limit.
func (t *Table) merge(e *entry, l *rules.Limit, g *sticky.LeaseGrant) bool {
	x, end := &e.lease, g.Until
	if quota.Of(l).Windowed() {
		if end = g.Window + l.Window(); g.Window%l.Window() != 0 {
			return false
		}
	}
	latest := t.at.Millis + t.env.MaxOffset // now, by the clock of the owner
	if g.Until > end || endsLate(l, latest, g.Until) {
		return false
	}
	if endsLate(l, latest, x.until) {
		e.revoke()
	}
	if g.Window > x.window {
		t.returnLeft(e, l, 0)
		e.wait()
		x.begin(g.Window, g.Until)
	}
	if g.Window < x.window || g.Window <= x.former {
		return true // its waiters request again
	}
	s, total := x.source(g.Owner), g.Total
	if s != nil && total > s.total && sat.Add(x.granted(), total-s.total) > mostGranted(l, g.Until-t.at.Millis) {
		if !g.Denied { // else the limit was greater when these rights were granted
			return false
		}
		total = s.total
	}
	x.until = max(x.until, g.Until)
	if s != nil {
		s.total, s.round = max(s.total, total), max(s.round, g.Round)
	}
	x.answered, x.keep = max(t.at.Mono, 1), g.Keep
	x.report = quota.Report{Remaining: g.Remaining, Reset: max(g.Reset, 0), Retry: max(g.Retry, 0), Never: g.Never}
	return true
}

// revoke ends a lease that would keep grants under the limits in force out,
// since these end earlier. The windows before it stay over: the totals of their
// grants have rights that were used.
func (e *entry) revoke() {
	x := &e.lease
	former := x.former
	e.wait()
	x.begin(former, former)
	x.former = former
}

// wait lets the calls wait again whose rights were set aside in a lease that is
// over.
func (e *entry) wait() {
	for i := range e.waiters {
		if w := &e.waiters[i]; w.state == granted && !w.byOwner {
			w.state, w.request = waiting, 0
		}
	}
}

// unanswered ends the wait of the calls that a request covered which the owner
// could not answer. A call whose window has ended requests once more.
func (t *Table) unanswered(e *entry, r *rules.Rule, g *sticky.LeaseGrant) {
	again := g.Reason == sticky.WindowOver
	for i := range e.waiters {
		switch w := &e.waiters[i]; {
		case w.state != waiting || w.request == 0 || w.request > g.ID:
		case again && !w.retried:
			w.request, w.retried = 0, true
		default:
			t.answer(w, unansweredFor(g.Reason))
		}
	}
	if again {
		t.request(e, r)
	}
}

// unansweredFor returns the state of a call that the owner did not decide.
func unansweredFor(reason sticky.Reason) waitState {
	if reason == sticky.Full {
		return noRoom
	}
	return unanswered
}
