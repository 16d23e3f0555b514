package lease

import (
	"slices"
	"time"

	"github.com/georld/rld/internal/sat"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// owner is the state of a key at its owner. Rights are consumed when they are
// granted.
type owner struct {
	account  quota.Account // of the whole limit
	window   int64         // of account, for fixed and sliding windows
	proposer quorum.Proposer
	others   sticky.Watermarks // consumption by other owners that account counts
	proposed time.Duration     // when the Accepts under way were first sent
	took     time.Duration     // how long the latest majority took
	ready    bool              // a majority answered: account counts all other consumption
	reserved uint64            // below the watermark, set aside for calls of this daemon
	grantees []grantee
	queue    []queued
	burst    rateMeter // of burstInterval
}

// grantee is a daemon with rights that this owner granted.
type grantee struct {
	daemon          crdt.Incarnation
	requestID       uint64 // of the latest request
	window, until   int64  // of the grants, and when they end
	total, returned uint64 // of window
	requestedAt     time.Duration
}

// queued is a request that waits for a watermark.
type queued struct {
	request sticky.LeaseRequest
	at      time.Duration
}

const (
	maxQueued   = 1_024
	maxGrantees = 4_096
	// queueTimeout is how long a request waits for a watermark. Its lessee
	// waits no longer.
	queueTimeout = 500 * time.Millisecond
	// leastUsable is how long grants of logs and buckets stay usable at least,
	// in milliseconds.
	leastUsable = 100
)

// own returns the owner state of an entry and makes it if there is none.
func (t *Table) own(e *entry) *owner {
	if e.owner == nil {
		t.terms++
		e.owner = &owner{proposer: quorum.Proposer{Term: t.terms}}
		t.proposing[t.terms] = e
	}
	return e.owner
}

// disown forgets the owner state of an entry. The voters have its watermark.
func (t *Table) disown(e *entry) {
	if e.owner != nil {
		delete(t.proposing, e.owner.proposer.Term)
		e.owner = nil
	}
}

// over reports whether nothing of the owner state can matter any more.
func (o *owner) over(now int64) bool {
	if len(o.queue) > 0 || o.proposer.Busy() ||
		slices.ContainsFunc(o.proposer.Held(), func(m sticky.Watermark) bool { return now < m.End }) {
		return false
	}
	// Totals must not start again while a lessee still adds to them.
	return !slices.ContainsFunc(o.grantees, func(g grantee) bool { return now < g.until+keptAfterEnd })
}

// accountUntil returns the account for rights that are used until an instant.
// More than a step of a bucket away, it has at least as much in use as the
// bucket refills until then.
func (o *owner) accountUntil(l *rules.Limit, now, until int64) quota.Account {
	return o.account.Held(l, now, until-now-quota.Of(l).Step())
}

// left returns the rights of the limit that are not consumed or set aside, for
// use until an instant.
func (o *owner) left(l *rules.Limit, now, until int64) uint64 {
	a := &o.account
	if quota.Of(l).Drains() {
		held := o.accountUntil(l, now, until)
		a = &held
	}
	left := a.Left(l, quota.Of(l).Full(), now)
	return left - min(left, o.reserved)
}

// room returns the rights below the watermark that are not consumed or set
// aside, for use until an instant.
func (o *owner) room(l *rules.Limit, now, until int64) uint64 {
	a, at := &o.account, spentAt(l, now, until)
	if quota.Of(l).Drains() {
		held := o.accountUntil(l, now, until)
		a = &held
	}
	room := a.Room(l, now, at, o.watermark(a.Watermark(l, now, at, 0).Window))
	return room - min(room, o.reserved)
}

// spend consumes rights that count from an instant on.
func (o *owner) spend(l *rules.Limit, at Now, from int64, n uint64) {
	o.account.SpendAt(l, at.Millis, from, n)
	o.burst.add(at.Mono, burstInterval, n)
}

// serve grants what pending calls and queued requests need, in order, as far as
// the watermark reaches, and advances the watermark for the rest.
func (t *Table) serve(e *entry, r *rules.Rule, v *route.Routing) {
	l, o := t.limit(r, e.reserve), e.owner
	switch {
	case l == nil:
		t.refuseQueue(o, sticky.UnknownRule)
		return
	case !e.homed(v):
		t.dismiss(e, sticky.NotOwner)
		return
	}
	o.roll(l, t.at.Millis)
	local := t.serveWaiters(e, l)
	remote, until := t.serveQueue(e, l)
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
			t.answer(w, unanswered)
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

// serveQueue answers queued requests. It returns how many rights that are left
// lack a watermark, and until when these may be used.
func (t *Table) serveQueue(e *entry, l *rules.Limit) (lack uint64, until int64) {
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
// watermark: it then returns how many do.
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

// grantee returns the entry of a daemon, nil if there are too many.
func (o *owner) grantee(daemon crdt.Incarnation, now int64) *grantee {
	for i := range o.grantees {
		if o.grantees[i].daemon == daemon {
			return &o.grantees[i]
		}
	}
	if len(o.grantees) == maxGrantees {
		o.grantees = slices.DeleteFunc(o.grantees, func(g grantee) bool { return now >= g.until+keptAfterEnd })
	}
	if len(o.grantees) == maxGrantees {
		return nil
	}
	o.grantees = append(o.grantees, grantee{daemon: daemon})
	return &o.grantees[len(o.grantees)-1]
}

// requesters counts the daemons that sent a request in the last within, at
// least one.
func (o *owner) requesters(mono, within time.Duration) uint64 {
	n := uint64(0)
	for i := range o.grantees {
		if mono-o.grantees[i].requestedAt < within {
			n++
		}
	}
	return max(n, 1)
}

// surplus returns how many of the rights left a lessee gets on top of its
// need: extra rights, or prefetched ones if these are more.
func (o *owner) surplus(q *sticky.LeaseRequest, left uint64, mono time.Duration) uint64 {
	return max(min(q.Extra, left/(2*o.requesters(mono, time.Second))), min(q.Prefetch, o.keep(left, mono)))
}

// keep returns how many of the rights left each lessee may keep unused.
func (o *owner) keep(left uint64, mono time.Duration) uint64 {
	return left / (prefetchPart * o.requesters(mono, 2*prefetchInterval))
}
