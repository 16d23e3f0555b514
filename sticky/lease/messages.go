package lease

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// Ready is the work of a table for its caller.
type Ready struct {
	// Messages are to be sent at once; From, Stamp and Number are the caller's
	// to fill in. A message to the own daemon is for its acceptor and for Step.
	Messages []sticky.Message
	// Answered are the tickets whose calls are to be probed again.
	Answered []uint64
}

// Pending reports whether Ready would return anything.
func (t *Table) Pending() bool { return len(t.out) > 0 || len(t.answered) > 0 }

// Active reports whether Tick has work within the next TickEvery.
func (t *Table) Active() bool { return len(t.active) > 0 }

// TickEvery is the time between two calls of Tick while the table is active.
const TickEvery = 20 * time.Millisecond

// Ready returns the work since the last call. It must be called after each
// other method but Probe and Report.
func (t *Table) Ready() Ready {
	r := Ready{t.out, t.answered}
	t.out, t.answered = nil, nil
	return r
}

// to returns the message under way to a daemon, with room for one more item.
func (t *Table) to(daemon crdt.Incarnation) *sticky.Message {
	for i := range t.out {
		if m := &t.out[i]; m.To == daemon && max(len(m.Requests), len(m.Grants), len(m.Accepts), len(m.Accepted)) < sticky.MaxItems {
			return m
		}
	}
	t.out = append(t.out, sticky.Message{From: t.env.Self, To: daemon})
	return &t.out[len(t.out)-1]
}

// Step handles the requests, grants and accepted watermarks of a message that
// belong to this table's shard. It returns how many items it rejected.
func (t *Table) Step(at Now, m *sticky.Message) (rejected int) {
	t.at = at
	for i := range m.Requests {
		if q := &m.Requests[i]; t.env.Holds(q.Key) && !t.onRequest(m.From, q) {
			rejected++
		}
	}
	for i := range m.Grants {
		if g := &m.Grants[i]; t.env.Holds(g.Key) && !t.onGrant(m.From, g) {
			rejected++
		}
	}
	for i := range m.Accepted {
		if a := &m.Accepted[i]; t.env.Holds(a.Key) && !t.accepted(m.From, a) {
			rejected++
		}
	}
	t.stats.Rejected += uint64(rejected)
	return rejected
}

// onRequest answers a request, now or when the watermark is stored, or forwards
// it to the owner in this region. It returns false for a request to reject.
func (t *Table) onRequest(from crdt.Incarnation, q *sticky.LeaseRequest) bool {
	if q.Lessee != from && q.Hops == 0 || q.Lessee == t.env.Self || q.Hops > 1 || !t.env.Live(q.Lessee) {
		return false
	}
	r := t.shared[q.Rule]
	if r == nil || t.limit(r, q.Reserve) == nil {
		t.refuse(q, sticky.UnknownRule)
		return true
	}
	owner, v := t.ownerOf(q.Key, r.ID, q.Reserve || r.Limit.HomeInRegion())
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
	t.enqueue(e, r, v, q)
	return true
}

// enqueue takes the rights that a request returns back, and queues and serves
// the request.
func (t *Table) enqueue(e *entry, r *rules.Rule, v *route.Routing, q *sticky.LeaseRequest) {
	o, l := t.own(e), t.limit(r, e.reserve)
	o.roll(l, t.at.Millis)
	g := o.grantee(q.Lessee, t.at.Millis)
	if g == nil {
		t.refuse(q, sticky.Full)
		return
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
	if q.ID > 0 {
		q := *q
		switch {
		case q.Hops > 0: // a forwarder must not use up the lessee's IDs
		case q.ID <= g.requestID:
			t.stats.Replayed++
			q.Want, q.Need, q.Extra, q.Prefetch = 0, 0, 0, 0
		default:
			g.requestID = q.ID
		}
		if len(o.queue) < maxQueued {
			o.queue = append(o.queue, queued{q, t.at.Mono})
			t.activate(e)
		} else {
			t.refuse(&q, sticky.Full)
		}
	}
	t.serve(e, r, v)
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
