package lease

import (
	"time"

	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// Report describes the key of hits that were probed, and spent if they pass.
// Retry and Never are 0 unless the hits are over.
func (t *Table) Report(h *Hit, a *Answer) quota.Report {
	e, l := a.entry, t.limit(h.Rule, a.reserve)
	if e == nil || l == nil {
		if !a.Over() {
			return quota.Report{}
		}
		return quota.Report{Retry: max(time.Second, a.Within).Milliseconds(), Reset: h.Rule.Limit.Window()}
	}
	over := uint64(0)
	if a.Over() {
		over = h.need()
	}
	if w := e.waiter(h.Ticket); a.origin == fromTicket && w != nil {
		return w.report
	}
	if a.origin == fromOwner && e.owner != nil {
		return e.owner.account.Report(l, t.at.Millis, over)
	}
	return e.lease.lastReport(h, a, l, t.at)
}

// lastReport returns the owner's last report, and the rights left of its
// grants.
func (x *lease) lastReport(h *Hit, a *Answer, l *rules.Limit, at Now) quota.Report {
	if x.answered == 0 {
		return quota.Report{}
	}
	rep, age := x.report, at.Mono-x.answered
	left := x.left(l, at.Millis)
	rep.Reset = max(0, rep.Reset-age.Milliseconds())
	switch {
	case a.Over():
		rep.Retry = max(1, (x.deniedUntil - at.Mono).Milliseconds(), rep.Retry-age.Milliseconds())
	case h.looks() || age < 2*prefetchInterval:
		rep.Remaining = sat.Add(left, rep.Remaining)
	default: // others may have used the rest since
		rep.Remaining = left
	}
	return rep
}
