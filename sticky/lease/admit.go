package lease

import (
	"cmp"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/route"
)

// Hit is the hits of one descriptor on a strict key.
type Hit struct {
	Key  crdt.Key
	Rule *rules.Rule
	// N is the number of hits, Ahead that of the same call's earlier
	// descriptors on the key.
	N, Ahead uint64
	// Peek reports that the call charges nothing.
	Peek bool
	// Ticket is the number under which the call requested rights, 0 for none.
	Ticket uint64
	// Failed is how many of the owners that can decide the hits have not
	// answered in time: first the key's, then that of the regional reserve.
	Failed uint8
}

// need returns the rights that the call needs up to this descriptor.
func (h *Hit) need() uint64 { return sat.Add(h.Ahead, h.N) }

// looks reports whether the hits only ask for the state of the key.
func (h *Hit) looks() bool { return h.Peek || h.N == 0 }

// Verdict is a table's verdict on hits.
type Verdict uint8

// The verdicts.
const (
	// Admitted: the daemon has the rights, or on_failure admits.
	Admitted Verdict = iota
	// Denied: the owner has no rights left.
	Denied
	// Pending: the owner must be asked first. See Table.Request.
	Pending
	// Failed: no owner can be asked, and on_failure denies.
	Failed

	undecided // by a ticket, or by an entry: the next in turn decides
)

// Failure is why the owner of a key did not decide.
type Failure uint8

// The failures.
const (
	NoFailure Failure = iota
	// OwnerUnreachable: it is not known, did not answer in time, or reaches no
	// majority of its voters.
	OwnerUnreachable
	// BreakerOpen: its circuit breaker is open.
	BreakerOpen
	// NoRoom: this daemon, the owner or its voters have no room for the key.
	NoRoom
)

// origin is where the rights to hits come from.
type origin uint8

const (
	fromLease  origin = iota // granted to this daemon
	fromOwner                // this daemon is the owner
	fromTicket               // set aside for the call
)

// Answer is a table's answer to a hit. It is valid until the table changes.
type Answer struct {
	Verdict Verdict
	Failure Failure
	// Owner is the daemon to ask and Within how long to wait for it, when
	// Pending.
	Owner  crdt.Incarnation
	Within time.Duration

	entry   *entry // that decided, nil if on_failure did
	origin  origin
	reserve bool // the regional reserve decided, or is to be asked
	self    bool // this daemon is the owner to ask
}

// Over reports whether the hits are beyond the limit.
func (a *Answer) Over() bool { return a.Verdict == Denied || a.Verdict == Failed }

// Granted reports whether rights of an entry cover the hits. Those that are
// beyond the limit use none, also if a rule in shadow mode admits them.
func (a *Answer) Granted() bool { return a.entry != nil && !a.Over() }

// Reserve reports whether the regional reserve decided.
func (a *Answer) Reserve() bool { return a.reserve }

// Probe decides hits by the rights at hand, and charges nothing. If the owner
// of the key cannot be asked, the regional reserve decides, and after that the
// rule's on_failure.
func (t *Table) Probe(at Now, h *Hit, a *Answer) {
	t.at = at
	*a = Answer{}
	for step := range uint8(2) {
		a.reserve = step > 0
		l := t.limit(h.Rule, a.reserve)
		if l == nil {
			break
		}
		e := t.find(h.Key, h.Rule, a.reserve)
		if a.Verdict = t.byTicket(e, h, a, l); a.Verdict == undecided && h.Failed <= step {
			a.Verdict = t.byEntry(e, h, a, l)
		}
		if a.Verdict != Failed && a.Verdict != undecided {
			return
		}
		a.Failure = max(a.Failure, OwnerUnreachable)
	}
	a.entry, a.Verdict = nil, Failed
	if h.Rule.Limit.OnFailure == rules.Allow {
		a.Verdict = Admitted
	}
}

// byTicket returns the verdict on a call that has been waiting, undecided if it
// must go on to wait or has not waited.
func (t *Table) byTicket(e *entry, h *Hit, a *Answer, l *rules.Limit) Verdict {
	w := e.waiter(h.Ticket)
	if w == nil || w.state == waiting {
		return undecided
	}
	switch need := h.need(); {
	case w.state == unanswered:
		return Failed
	case w.state == noRoom:
		a.Failure = cmp.Or(a.Failure, NoRoom)
		return Failed
	case w.state == denied:
		a.entry, a.origin = e, fromTicket
		return Denied
	case !h.looks() && need > w.hits, !e.usable(w, l, t.at.Millis):
		e.release(w)
		w.state, w.request, w.byOwner = waiting, 0, false // its window has ended: it asks again
		return undecided
	default:
		a.entry, a.origin = e, fromTicket
		if w.hits == 0 && need > 0 && need > sat.Add(w.report.Remaining, e.lease.left(h.Rule.Limit, t.at.Millis)) {
			return Denied
		}
		return Admitted
	}
}

// byEntry returns the verdict by the lease, or by the owner or an answer of it.
func (t *Table) byEntry(e *entry, h *Hit, a *Answer, l *rules.Limit) Verdict {
	if e != nil && h.N > 0 && h.need() <= e.lease.left(l, t.at.Millis) {
		a.entry, a.origin = e, fromLease
		return Admitted
	}
	owner, v := t.ownerOf(entryKey(h.Key, a.reserve), h.Rule.ID, a.reserve || h.Rule.Limit.HomeInRegion(), l)
	if v == nil || owner.Incarnation == 0 {
		return Failed
	}
	open := false
	if e == nil && !hasRoom(t, h.Rule) {
		a.Failure = cmp.Or(a.Failure, NoRoom)
		return Failed
	}
	a.Owner, a.self = owner.Incarnation, owner.Self
	a.Within, open = t.env.Owners.Reach(owner.Incarnation)
	switch {
	case owner.Self:
		return t.byOwner(e, h, a, v, l)
	case !open:
		a.Failure = BreakerOpen
		return Failed
	case e == nil:
		return Pending
	}
	return t.byLastGrant(e, h, a, l)
}

// byOwner returns the verdict of a key that this daemon owns.
func (t *Table) byOwner(e *entry, h *Hit, a *Answer, v *route.Routing, l *rules.Limit) Verdict {
	if e != nil && e.owner != nil {
		o := e.owner
		o.roll(l, t.at.Millis)
		if left := o.left(l, t.at.Millis, t.at.Millis); o.ready {
			a.entry, a.origin = e, fromOwner
			switch {
			case h.need() > left:
				return Denied
			case h.looks() || h.need() <= o.room(l, t.at.Millis, t.at.Millis):
				return Admitted
			}
			a.entry = nil
		}
	}
	if v.Live() < v.Majority() || !v.IsVoter() {
		return Failed // no majority can store a watermark
	}
	return Pending
}

// byLastGrant returns the verdict by the last answer of another owner.
func (t *Table) byLastGrant(e *entry, h *Hit, a *Answer, l *rules.Limit) Verdict {
	x, need := &e.lease, h.need()
	if quota.Of(l).Windowed() && x.window != t.at.Millis-t.at.Millis%l.Window() {
		return Pending
	}
	switch {
	case x.denies(need, t.at.Mono):
		a.entry, a.origin = e, fromLease
		t.stats.Cached++
		return Denied
	case h.looks() && x.answered > 0 && t.at.Mono-x.answered < answerFresh:
		a.entry, a.origin = e, fromLease
		if need > sat.Add(x.report.Remaining, x.left(l, t.at.Millis)) {
			return Denied
		}
		return Admitted
	}
	return Pending
}

// Spend charges the rights to hits that were probed at the same instant.
func (t *Table) Spend(h *Hit, a *Answer) {
	e := a.entry
	if !a.Granted() {
		return // on_failure admitted them, or the rule is in shadow mode
	}
	owned := a.origin == fromOwner
	if a.origin == fromTicket {
		w := e.waiter(h.Ticket)
		if w == nil {
			return
		}
		hits := min(h.N, w.hits)
		owned = w.byOwner
		e.unreserve(owned, hits)
		w.hits -= hits
	} else {
		t.stats.Local++
		e.lease.called(t.at.Mono, h.N)
	}
	if !owned {
		t.spendLease(e, h)
		return
	}
	if l, v := t.limit(h.Rule, e.reserve), t.env.Owners.Routing(); l != nil && v != nil {
		e.owner.spend(l, t.at, t.at.Millis, h.N)
		t.advanceAhead(e, l, v)
	}
}

// Refund gives hits of a window back to the rights that were used, of the key
// or of its regional reserve: to the lease, which returns them when nobody uses
// them, or to the owner's account. Which of the two a hit used is not recorded,
// and does not matter to their sum.
func (t *Table) Refund(at Now, h *Hit, reserve bool, window int64, hits uint64) {
	t.at = at
	e, l := t.find(h.Key, h.Rule, reserve), t.limit(h.Rule, reserve)
	if e == nil || l == nil {
		return
	}
	if x := &e.lease; t.at.Millis < x.until && quota.Of(l).Windowed() && x.window == window {
		back := min(hits, x.used)
		x.used -= back
		hits -= back
		x.usedAt = t.at.Mono
		t.activate(e)
	}
	if o := e.owner; o != nil && hits > 0 {
		o.roll(l, t.at.Millis)
		o.account.Refund(l, window, hits)
	}
}
