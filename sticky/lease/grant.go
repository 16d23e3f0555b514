package lease

import (
	"cmp"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

const (
	// maxQueued is the default of Config.MaxQueued.
	maxQueued = 1_024
	// queueTimeout is how long a request waits for a watermark. Its lessee
	// waits no longer.
	queueTimeout = 500 * time.Millisecond
)

// onRequest answers a request, now or when the watermark is stored, or forwards
// it to the owner in this region. It returns false for a request to reject.
func (t *Table) onRequest(from crdt.Incarnation, q *sticky.LeaseRequest) bool {
	if q.Lessee != from && q.Hops == 0 || q.Lessee == t.env.Self || q.Hops > 1 || !t.env.Live(q.Lessee) {
		return false
	}
	r := t.set.FindShared(q.Rule)
	if r == nil || t.limit(r, q.Reserve) == nil {
		t.refuse(q, sticky.UnknownRule)
		return true
	}
	owner, v := t.ownerOf(q.Key, r.ID, q.Reserve || r.Limit.HomeInRegion(), r.Limit)
	switch {
	case v == nil || q.Hops > 0 && !v.IsVoter() || !owner.Self && q.Hops == 0 && (!owner.Own || owner.Incarnation == 0):
		t.refuse(q, sticky.NotOwner)
		return true
	case !owner.Self && q.Hops == 0:
		m := t.to(owner.Incarnation)
		m.Requests = append(m.Requests, *q)
		m.Requests[len(m.Requests)-1].Hops++
		return true
	}
	e := t.open(q.Key, r, q.Reserve)
	if e == nil || e.reserve != q.Reserve {
		t.refuse(q, sticky.Full)
		return e == nil
	}
	if t.enqueue(e, r, q) {
		t.serve(e, r, v)
	}
	return true
}

// enqueue takes back the rights that a request returns, and queues the request.
// It returns false if the request is refused because there is no room.
func (t *Table) enqueue(e *entry, r *rules.Rule, q *sticky.LeaseRequest) bool {
	o, l := t.own(e), t.limit(r, e.reserve)
	o.roll(l, t.at.Millis)
	g := o.grantee(q.Lessee, t.at.Millis)
	if g == nil {
		t.refuse(q, sticky.Full)
		return false
	}
	g.requestedAt = t.at.Mono
	if q.Hops == 0 && q.Owner == t.env.Self && q.Window == g.window && q.Returned > g.returned && q.Returned <= g.total {
		window := g.window
		if quota.Of(l).Stamped() {
			window -= quota.Of(l).WatermarkStep() // the step that ends then
		}
		o.account.Unspend(l, window, q.Returned-g.returned)
		g.returned = q.Returned
	}
	if q.ID == 0 {
		return true
	}
	queue := queued{*q, t.at.Mono}
	switch {
	case q.Hops > 0: // a forwarder must not use up the lessee's IDs
	case q.ID <= g.requestID:
		t.stats.Replayed++
		queue.request.Want, queue.request.Need, queue.request.Extra, queue.request.Prefetch = 0, 0, 0, 0
	default:
		g.requestID = q.ID
	}
	if len(o.queue) >= cmp.Or(t.cfg.MaxQueued, maxQueued) {
		t.refuse(q, sticky.Full)
		return true
	}
	o.queue = append(o.queue, queue)
	t.activate(e)
	return true
}

// serve grants what pending calls and queued requests need, in order, as far as
// the watermark reaches, and advances the watermark for the rest.
func (t *Table) serve(e *entry, r *rules.Rule, v *route.Routing) {
	l, o := t.limit(r, e.reserve), e.owner
	switch {
	case l == nil:
		t.refuseQueue(o, sticky.UnknownRule)
		return
	case !homed(t, e, l, v):
		t.dismiss(e, sticky.NotOwner)
		return
	}
	o.roll(l, t.at.Millis)
	local := t.serveWaiters(e, l)
	remote, until := t.serveQueue(e, r, l)
	if v.Live() < v.Majority() {
		t.dismiss(e, sticky.NoMajority)
		return
	}
	t.advance(e, l, v, local, remote, until)
}

// dismiss refuses all that wait for a watermark which cannot be stored.
func (t *Table) dismiss(e *entry, reason sticky.Reason) {
	t.refuseQueue(e.owner, reason)
	for i := range e.waiters {
		if w := &e.waiters[i]; w.state == waiting {
			t.answer(w, unansweredFor(reason))
		}
	}
}

func (t *Table) refuseQueue(o *owner, reason sticky.Reason) {
	for i := range o.queue {
		t.refuse(&o.queue[i].request, reason)
	}
	clear(o.queue)
	o.queue = o.queue[:0]
}

// serveWaiters sets rights aside for calls of this daemon, and returns how many
// lack a watermark.
func (t *Table) serveWaiters(e *entry, l *rules.Limit) (lack uint64) {
	o, now := e.owner, t.at.Millis
	for i := range e.waiters {
		w := &e.waiters[i]
		if w.state != waiting {
			continue
		}
		left, room := o.left(l, now, now), o.room(l, now, now)
		switch {
		case o.ready && w.hits > left && o.proposer.Shared():
			t.answer(w, noRoom)
		case o.ready && w.hits > left:
			w.report = o.account.Report(l, now, w.hits)
			t.answer(w, denied)
		case o.ready && w.hits <= room:
			w.byOwner, w.window = true, o.account.Watermark(l, now, now, 0).Window
			o.reserved += w.hits
			w.report = o.account.Report(l, now, 0)
			t.answer(w, granted)
		default:
			lack = sat.Add(lack, w.hits)
		}
	}
	return lack
}

// serveQueue answers queued requests under a rule and its limit for the entry.
// It returns how many rights that are left lack a watermark, and until when
// these may be used.
func (t *Table) serveQueue(e *entry, r *rules.Rule, l *rules.Limit) (lack uint64, until int64) {
	o := e.owner
	kept := o.queue[:0]
	for i := range o.queue {
		q := o.queue[i]
		if t.at.Mono-q.at > queueTimeout {
			t.refuse(&q.request, sticky.NoMajority)
			continue
		}
		end := leaseEnd(l, t.at.Millis, min(int64(q.request.Within), maxWithin.Milliseconds()))
		if g := o.grantee(q.request.Lessee, t.at.Millis); g != nil && !quota.Of(l).Windowed() {
			if endsLate(r.Limit, t.at.Millis, g.until) { // as its lessee sees it
				g.window, g.until, g.total, g.returned = 0, 0, 0, 0
			}
			end = max(end, g.window) // it has rights until then
		}
		if missing, ok := t.grant(e, l, &q.request, end); !ok {
			lack, until = sat.Add(lack, missing), max(until, end)
			kept = append(kept, q)
		}
	}
	clear(o.queue[len(kept):])
	o.queue = kept
	return lack, until
}

// grant answers a request with rights until an instant, unless they lack a
// watermark: it then returns how many do. Nothing is known of a key that shares
// its watermark with others and has none left.
func (t *Table) grant(e *entry, l *rules.Limit, q *sticky.LeaseRequest, until int64) (lack uint64, ok bool) {
	o, now := e.owner, t.at.Millis
	window := leaseWindow(l, now, until)
	g := o.grantee(q.Lessee, now)
	switch {
	case q.Window != window && quota.Of(l).Windowed():
		t.refuse(q, sticky.WindowOver)
		return 0, true
	case g == nil:
		t.refuse(q, sticky.Full)
		return 0, true
	case !o.ready:
		return q.Want, false
	case window < g.window: // the clock went back
		t.refuse(q, sticky.WindowOver)
		return 0, true
	}
	left, room := o.left(l, now, until), o.room(l, now, until)
	n := min(q.Want, left)
	if q.Want > 0 && n < max(q.Need, 1) {
		n = 0
	} else if n > room {
		return n, false
	}
	if q.Want > 0 && n == 0 && o.proposer.Shared() {
		t.refuse(q, sticky.Full)
		return 0, true
	}
	short := n < q.Want
	if !short {
		n += min(o.surplus(q, left-n, t.at.Mono), room-n)
	}
	if n > 0 {
		if g.window < window {
			g.window, g.until, g.total, g.returned = window, until, 0, 0
		}
		if quota.Of(l).Drains() {
			o.account = o.accountUntil(l, now, until)
		}
		o.spend(l, t.at, spentAt(l, now, until), n)
		g.total += n
		t.stats.Granted += n
	} else if now < g.until { // the rights that the lessee has go on
		window, until = g.window, g.until
	}
	total := uint64(0)
	if g.window == window {
		total = g.total
	}
	rep := o.account.Report(l, now, max(q.Need, 1))
	t.reply(e, q, sticky.LeaseGrant{
		Window: window, Until: until, Total: total, Denied: short,
		Never: short && rep.Never, Retry: rep.Retry, Remaining: o.left(l, now, until), Reset: rep.Reset,
		Keep: o.keep(left-n, t.at.Mono),
	})
	return 0, true
}

// reply answers a request.
func (t *Table) reply(e *entry, q *sticky.LeaseRequest, g sticky.LeaseGrant) {
	g.ID, g.Owner, g.Key, g.Rule, g.Reserve = q.ID, t.env.Self, q.Key, q.Rule, q.Reserve
	g.Round = e.owner.proposer.Ballot().Round
	if g.Denied {
		t.stats.Denials++
	} else {
		t.stats.Grants++
	}
	m := t.to(q.Lessee)
	m.Grants = append(m.Grants, g)
}

// refuse answers a request with the reason for which it cannot be served.
func (t *Table) refuse(q *sticky.LeaseRequest, reason sticky.Reason) {
	t.stats.Refused[reason]++
	if q.ID > 0 {
		m := t.to(q.Lessee)
		m.Grants = append(m.Grants, sticky.LeaseGrant{
			ID: q.ID, Owner: t.env.Self, Key: q.Key, Rule: q.Rule, Reserve: q.Reserve, Reason: reason,
		})
	}
}
