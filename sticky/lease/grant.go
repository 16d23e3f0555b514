package lease

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// onGrant handles the answer of an owner. It returns false for one to reject:
// of a daemon that cannot be the owner, or of no entry.
func (t *Table) onGrant(from crdt.Incarnation, g *sticky.LeaseGrant) bool {
	r, v := t.shared[g.Rule], t.env.Owners.Routing()
	if g.Owner != from || g.Owner == 0 || r == nil || v == nil ||
		!v.Candidate(g.Key, uint64(r.ID), g.Reserve || r.Limit.HomeInRegion(), g.Owner) {
		return false
	}
	e := t.entries[idOf(g.Key, r, g.Reserve)]
	if e == nil || e.reserve != g.Reserve || t.ruleOf(e) == nil {
		return false
	}
	t.activate(e)
	x := &e.lease
	x.settle(t.at.Mono, g.ID)
	if g.Reason != sticky.NoReason {
		t.unanswered(e, r, g)
		return true
	}
	if !t.merge(e, r.Limit, g) {
		return false
	}
	x.denials = min(x.denials+1, 7)
	if !g.Denied {
		x.denials, x.denied = 0, 0
	}
	t.serveByLease(e, r.Limit, g)
	x.prefetched = x.left(r.Limit, t.at.Millis) > 0
	if !g.Denied && g.Remaining == 0 && g.Retry > 0 { // these were the last
		x.deny(t.at.Mono, 1)
	}
	t.request(e, r)
	return true
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
// that is over or not near.
func (t *Table) merge(e *entry, l *rules.Limit, g *sticky.LeaseGrant) bool {
	x, end := &e.lease, g.Until
	if quota.Of(l).Windowed() {
		if end = g.Window + l.Window(); g.Window%l.Window() != 0 {
			return false
		}
	}
	if g.Until > end || g.Until-t.at.Millis > max(l.Window(), 4*maxWithin.Milliseconds())+t.env.MaxOffset {
		return false
	}
	if g.Window > x.window {
		t.returnLeft(e, l, 0)
		for i := range e.waiters {
			if w := &e.waiters[i]; w.state == granted && !w.byOwner {
				w.state, w.request = waiting, 0
			}
		}
		x.begin(g.Window, g.Until)
	}
	if g.Window < x.window {
		return true // its waiters request again
	}
	x.until = max(x.until, g.Until)
	if s := x.source(g.Owner); s != nil {
		s.total, s.round = max(s.total, g.Total), max(s.round, g.Round)
	}
	x.answered, x.keep = max(t.at.Mono, 1), g.Keep
	x.report = quota.Report{Remaining: g.Remaining, Reset: max(g.Reset, 0), Retry: max(g.Retry, 0), Never: g.Never}
	return true
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
			t.answer(w, unanswered)
		}
	}
	if again {
		t.request(e, r)
	}
}
