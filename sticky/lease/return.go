package lease

import (
	"time"

	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

const (
	// returnAfter is how long extra rights must be unused to be returned.
	returnAfter = 200 * time.Millisecond
	// trimAfter is how long a lease must be unused for prefetched rights to be
	// returned that the current rate does not need.
	trimAfter = time.Second
	// returnResends is how often a return is sent again, prefetchInterval
	// apart: returns are not acknowledged.
	returnResends = 2
)

// returnLeft returns the rights left to the owner, except keep of them. Rights
// that another daemon granted can only be used here.
func (t *Table) returnLeft(e *entry, l *rules.Limit, keep uint64) {
	x := &e.lease
	owner, _ := t.ownerOf(e.id.key, e.rule, e.reserve || l.HomeInRegion(), l)
	if quota.Of(l).Drains() || owner.Incarnation == 0 {
		return
	}
	sum := x.granted()
	left := sum - min(sum, sat.Add(sat.Add(x.used, x.reserved), keep))
	for i := range x.sources {
		s := &x.sources[i]
		if back := min(left, s.total-s.returned); s.owner == owner.Incarnation && back > 0 {
			s.returned += back
			x.resends, x.returnedAt = returnResends, t.at.Mono
			t.stats.Returned += back
			t.sendReturned(e, s)
		}
	}
}

// sendReturned sends an owner the sum of the rights returned to it.
func (t *Table) sendReturned(e *entry, s *source) {
	m := t.to(s.owner)
	m.Requests = append(m.Requests, sticky.LeaseRequest{
		Lessee: t.env.Self, Owner: s.owner, Key: e.id.key, Rule: e.id.rule, Reserve: e.reserve,
		Window: e.lease.window, Returned: s.returned,
	})
}

// trim returns prefetched rights that the current rate does not need, and
// sends returns again. The sweep calls it for entries that are not active.
func (t *Table) trim(e *entry) {
	x, mono := &e.lease, t.at.Mono
	if t.at.Millis >= x.until || len(x.sources) == 0 || mono-x.usedAt < trimAfter {
		return
	}
	r := t.ruleOf(e)
	if r == nil {
		return
	}
	if keep := t.kept(x, r.Limit); x.left(r.Limit, t.at.Millis) > keep {
		t.returnLeft(e, r.Limit, keep)
		return
	}
	if x.resends == 0 || mono-x.returnedAt < prefetchInterval {
		return
	}
	x.resends, x.returnedAt = x.resends-1, mono
	for i := range x.sources {
		if s := &x.sources[i]; s.returned > 0 {
			t.sendReturned(e, s)
		}
	}
}

// Leave returns the rights of all leases, since the daemon is about to stop.
// From here on none are kept.
func (t *Table) Leave(at Now) {
	t.at, t.cfg.Prefetch = at, 0
	for _, e := range t.all {
		if r := t.ruleOf(e); r != nil && e.lease.left(r.Limit, at.Millis) > 0 {
			t.returnLeft(e, r.Limit, 0)
		}
	}
}
