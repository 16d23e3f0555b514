package lease

import (
	"slices"

	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// maxWaiters bounds the calls that wait for one entry.
const maxWaiters = 4_096

// waitState is the state of a waiter.
type waitState uint8

const (
	waiting    waitState = iota
	granted              // rights are set aside
	denied               // by the owner
	unanswered           // the owner could not answer
	noRoom               // the owner has no room for the key
)

// waiter is one pending call.
type waiter struct {
	ticket  uint64
	hits    uint64 // that it needs; when granted, that are set aside
	request uint64 // ID of the request that covers it, 0 for none yet
	first   uint64 // ID of the first one
	state   waitState
	byOwner bool  // set aside by this daemon as the owner, not of its lease
	retried bool  // requested again since a window had ended
	window  int64 // of the rights set aside
	report  quota.Report
}

// waiter returns the waiter of a ticket, nil if there is none.
func (e *entry) waiter(ticket uint64) *waiter {
	if e == nil || ticket == 0 {
		return nil
	}
	for i := range e.waiters {
		if e.waiters[i].ticket == ticket {
			return &e.waiters[i]
		}
	}
	return nil
}

// release frees the rights that are set aside for a waiter.
func (e *entry) release(w *waiter) {
	if w.state == granted {
		e.unreserve(w.byOwner, w.hits)
	}
}

// unreserve makes rights of a call available to others: of the owner's
// account, or of the lease.
func (e *entry) unreserve(byOwner bool, hits uint64) {
	switch {
	case !byOwner:
		e.lease.reserved -= min(e.lease.reserved, hits)
	case e.owner != nil:
		e.owner.reserved -= min(e.owner.reserved, hits)
	}
}

// remove releases and forgets the waiter of a ticket.
func (e *entry) remove(ticket uint64) {
	if w := e.waiter(ticket); w != nil {
		e.release(w)
		e.waiters = slices.DeleteFunc(e.waiters, func(w waiter) bool { return w.ticket == ticket })
	}
}

// answer ends the wait of a call.
func (t *Table) answer(w *waiter, s waitState) {
	w.state = s
	t.answered = append(t.answered, w.ticket)
}

// usable reports whether the rights set aside for a waiter can still be used.
func (e *entry) usable(w *waiter, l *rules.Limit, now int64) bool {
	if !w.byOwner {
		return w.window == e.lease.window && (w.hits == 0 || w.hits <= e.lease.held(l, now))
	}
	o := e.owner
	return o != nil && o.account.Watermark(l, now, now, 0).Window == w.window &&
		(!quota.Of(l).Drains() || o.account.Room(l, now, now, o.watermark(w.window)) >= o.reserved)
}

// Cancel gives up the rights set aside for a ticket that were not spent. Every
// call that requested rights must end with it.
func (t *Table) Cancel(at Now, h *Hit, ticket uint64) {
	t.at = at
	for _, reserve := range [...]bool{false, true} {
		e := t.find(h.Key, h.Rule, reserve)
		w := e.waiter(ticket)
		if w == nil {
			continue
		}
		unused := w.state == granted && w.hits > 0
		e.remove(ticket)
		if x := &e.lease; unused && len(e.waiters) == 0 && len(x.requests) == 0 && x.extra(t.at.Mono) == 0 {
			t.returnLeft(e, h.Rule.Limit, t.kept(x, h.Rule.Limit))
		}
	}
}

// uncovered sums up the rights that waiters need and no request under way is
// for, and returns the least that one of them needs. looks reports that one
// only asks for the state.
func (e *entry) uncovered() (want, need uint64, looks bool) {
	for i := range e.waiters {
		w := &e.waiters[i]
		if w.state != waiting {
			continue
		}
		if w.request != 0 && !e.lease.underWay(w.request) {
			w.request = 0 // lost
		}
		switch {
		case w.request != 0:
		case w.hits == 0:
			looks = true
		default:
			want = sat.Add(want, w.hits)
			if need == 0 || w.hits < need {
				need = w.hits
			}
		}
	}
	return min(want, 1<<32), need, looks
}

// cover records that a request covers all waiters without one.
func (e *entry) cover(request uint64) {
	for i := range e.waiters {
		if w := &e.waiters[i]; w.state == waiting && w.request == 0 {
			w.request = request
			if w.first == 0 {
				w.first = request
			}
		}
	}
}
