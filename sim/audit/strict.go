package audit

import (
	"maps"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sticky"
)

// strictAuditor checks the promise of owners, by the messages that they send:
// the leases of all owners of a window, without those that were returned, sum
// to no more than the limit, also when another owner takes over. A call that
// still waits is not admitted.
type strictAuditor struct {
	finding
	windows map[leaseKey]*leases
	swept   time.Duration
	// could is the hits that strict windows could have admitted, missed those
	// of them that they denied.
	could, missed uint64
}

// leaseKey names a window of a strict key, in a region where each has its own.
type leaseKey struct {
	key    crdt.Key
	window int64
	region int
}

// leases are those of a window.
type leases struct {
	limit uint64
	from  int // the oldest rule set whose limit may bound it
	end   int64
	to    []lease
}

// lease is what one owner granted a lessee.
type lease struct {
	owner, lessee   crdt.Incarnation
	total, returned uint64
}

func strict(a *sim.Auditor, t *truth) {
	s := &strictAuditor{finding: finding{a, t}, windows: make(map[leaseKey]*leases)}
	t.closed = append(t.closed, s.close)
	a.Decided, a.Sent, a.Fill = s.decided, s.sent, s.fill
}

func (a *strictAuditor) decided(d *sim.Decided) {
	if !d.Limit.Homed() || d.Rule == nil || d.Rule.Limit != d.Limit {
		return
	}
	if !a.ok(!d.Status.Wait || !d.Allowed) {
		a.fail("%s admitted %s, which waits for %v", d.Daemon.Name, sim.RuleName(d.Rule), d.Status.Owner)
	}
}

func (a *strictAuditor) sent(d *sim.Daemon, m *sticky.Message) {
	for i := range m.Requests {
		a.returned(&m.Requests[i])
	}
	for i := range m.Grants {
		a.grant(d, m.To, &m.Grants[i])
	}
	if now := a.world.Now(); now-a.swept > time.Second {
		a.swept = now
		slowest := a.slowest()
		maps.DeleteFunc(a.windows, func(_ leaseKey, w *leases) bool { return w.end < slowest-keepWindows })
	}
}

// returned notes the rights that a lessee returns.
func (a *strictAuditor) returned(r *sticky.LeaseRequest) {
	if r.Owner == 0 {
		return
	}
	for region := everywhere; region < len(a.world.Regions()); region++ {
		if w := a.windows[leaseKey{r.Key, r.Window, region}]; w != nil {
			l := w.of(r.Owner, r.Lessee)
			l.returned = max(l.returned, r.Returned)
		}
	}
}

func (w *leases) of(owner, lessee crdt.Incarnation) *lease {
	for i := range w.to {
		if l := &w.to[i]; l.owner == owner && l.lessee == lessee {
			return l
		}
	}
	w.to = append(w.to, lease{owner: owner, lessee: lessee})
	return &w.to[len(w.to)-1]
}

// grant checks what an owner grants of a window.
func (a *strictAuditor) grant(d *sim.Daemon, lessee crdt.Incarnation, g *sticky.LeaseGrant) {
	l, regional, from := a.limitOf(g)
	if g.Reason != sticky.NoReason || l == nil || !quota.Of(l).Windowed() {
		return
	}
	k := leaseKey{g.Key, g.Window, everywhere}
	if regional {
		k.region = d.RegionIndex
	}
	w := a.windows[k]
	if w == nil {
		w = &leases{from: from}
		a.windows[k] = w
	}
	w.limit, w.end = max(w.limit, quota.Of(l).Capacity()), max(w.end, g.Window+2*l.Window())
	granted := w.of(g.Owner, lessee)
	if g.Total <= granted.total {
		return
	}
	granted.total = g.Total
	sum := uint64(0)
	for _, o := range w.to {
		sum += o.total - min(o.total, o.returned)
	}
	// A regional reserve may be of another limit than the rest, while limits
	// change.
	a.check(sum <= w.limit*(1+a.endedAhead()) || w.from < len(a.world.Sets())-1, "%s granted %d of %d in window %d of %v",
		d.Name, sum, w.limit, g.Window, g.Key)
}

// limitOf returns the limit that a grant is of, the greatest of those in force
// somewhere, nil for none; whether each region has its own; and the oldest set
// that was in force a window ago.
func (a *strictAuditor) limitOf(g *sticky.LeaseGrant) (most *rules.Limit, regional bool, from int) {
	a.noteSets()
	n, sets := len(a.world.Regions()), a.world.Sets()
	if r := sets[len(sets)-1].FindShared(g.Rule); r != nil && r.Limit != nil {
		from = a.oldestSet(a.world.Now() - time.Duration(2*r.Limit.Window())*time.Millisecond - a.skew())
	}
	for _, set := range sets[from:] {
		r := set.FindShared(g.Rule)
		if r == nil || r.Limit == nil || !r.Limit.Homed() {
			continue
		}
		regional = regional || g.Reserve || r.Limit.HomeInRegion()
		for reserves := range n { // how many regions have one, by the layout
			l := r.Limit.OwnerLimit(reserves + 1)
			if g.Reserve {
				l = r.Limit.ReserveLimit(reserves + 1)
			}
			if most == nil || quota.Of(&l).Capacity() > quota.Of(most).Capacity() {
				most = &l
			}
		}
	}
	return most, regional, from
}

// close counts the hits that a fixed window could have admitted.
func (a *strictAuditor) close(c *counter, w *window) {
	if c.rule == nil || c.rule.Limit == nil || !c.rule.Limit.Homed() || !quota.Of(c.rule.Limit).Resets() {
		return
	}
	could := min(w.requested, uint64(c.rule.Limit.Requests))
	a.could, a.missed = a.could+could, a.missed+could-min(could, w.admitted)
}

func (a *strictAuditor) fill(r *sim.Result) {
	a.closeAll(a.close)
	if r.Strict != nil && a.could > 0 {
		r.Strict.UnderRatio = float64(a.missed) / float64(a.could)
	}
}
