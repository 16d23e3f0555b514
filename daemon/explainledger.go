package daemon

import (
	"fmt"
	"time"

	"github.com/georld/rld/daemon/overage"

	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/sticky/lease"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/sticky"
)

// counts returns what each region is known to have admitted of the label that
// runs.
func (x *explainer) counts(l *rules.Limit, e *node.Explained, links []node.Link, now int64) []api.RegionCount {
	regions := x.regions
	switch {
	case x.d.cluster == nil || l.Scope == rules.NodeLocal:
		return nil
	case l.Scope == rules.Region:
		regions = []string{x.d.cfg.Region}
	}
	out := make([]api.RegionCount, 0, len(regions))
	for _, name := range regions {
		r := api.RegionCount{Region: name}
		own := name == x.d.cfg.Region
		for i := range e.Cells {
			c := &e.Cells[i]
			of := c.Kind == gossip.Daemon && own || c.Kind == gossip.RegionSum && c.Incarnation == gossip.RegionIncarnation(name)
			if of && runs(l, c, e.Window, now) {
				r.Hits += c.Value.Net()
			}
		}
		if age := oldestView(links, name, own); age >= 0 {
			r.StalenessSeconds = api.Seconds(age)
			if stamp := x.stamps[name]; stamp > 0 {
				r.Stamp = stamp.String()
			}
		}
		out = append(out, r)
	}
	return out
}

// runs reports whether a cell is of the label that runs; of a log, whether it still
// counts, and of a bucket, whether it is of the label that others are told now.
func runs(l *rules.Limit, c *gossip.Cell, window, now int64) bool {
	switch {
	case quota.Of(l).Stamped():
		return c.Window > now-l.Window()
	case quota.Of(l).Drains():
		window, _, _ = quota.Of(l).Shared(&quota.Cell{}, now)
	}
	return c.Window == window
}

// oldestView returns how old the oldest view of a daemon of a region is, with what
// was not sent: -1 when nothing was heard of any, and at least 0 of the own region.
func oldestView(links []node.Link, region string, own bool) time.Duration {
	age := time.Duration(-1)
	if own {
		age = 0
	}
	for i := range links {
		if l := &links[i]; l.Peer.Region == region && l.Unsent >= 0 {
			age = max(age, l.Unsent)
		}
	}
	return age
}

// maxBatches bounds the batches of an answer.
const maxBatches = 32

// ledger describes what is known of the rights that a home grants, nil for none.
func (x *explainer) ledger(e *lease.Explanation, st *node.Status, now int64, floor bool) *api.StrictKey {
	if e == nil {
		return nil
	}
	v := x.d.strict.Routing()
	out := &api.StrictKey{Layout: v.Number(), Region: e.Owner.Region, Pinned: e.Pinned, Self: e.Owner.Self}
	if e.Owner.Incarnation != 0 {
		ref := x.ref(e.Owner.Incarnation)
		ref.Region, ref.Name = e.Owner.Region, e.Owner.Name
		out.Owner = &ref
	}
	out.WhyNot = x.outOfReach(e, v, st, floor)
	out.Reachable = out.WhyNot == ""
	if !e.Owner.Self {
		out.Breaker = x.circuit(e.Owner.Incarnation)
	}
	out.Lease = creditOf(e.Lease, now)
	switch {
	case e.Owned != nil:
		x.bank(out, e, now)
	case x.record(out, e, now):
	case e.Lease != nil && e.Lease.From != 0:
		out.Source = api.SourceGrants
		out.Ballot = &api.BallotState{Round: e.Lease.Round, Owner: x.ref(e.Lease.From)}
	}
	return out
}

// outOfReach says why the home of a ledger would not decide, "" when it would.
func (x *explainer) outOfReach(e *lease.Explanation, v *route.Routing, st *node.Status, floor bool) string {
	failed := st.Degraded == node.OwnerUnreachable
	if floor {
		failed = st.Gate == node.FailureGate
	}
	switch {
	case e.Owner.Incarnation == 0:
		return fmt.Sprintf("no replica of %s lives", e.Owner.Region)
	case e.Owner.Self && v.Live() < v.Majority():
		return fmt.Sprintf("%d of the %d replicas of %s live, and it takes %d", v.Live(), len(v.Voters()), e.Owner.Region, v.Majority())
	case e.Owner.Self && failed:
		return "no majority of the replicas has answered in time"
	case e.Owner.Self:
		return ""
	case !e.Open:
		return "its circuit breaker is open"
	case failed:
		return fmt.Sprintf("it has not answered within %v", e.Within.Round(time.Millisecond))
	}
	return ""
}

// circuit describes the breaker to a home, nil for one that was never met.
func (x *explainer) circuit(owner crdt.Incarnation) *api.Breaker {
	for _, c := range x.d.strict.circuits() {
		if c.Owner == owner {
			return new(x.d.circuitOf(&c))
		}
	}
	return nil
}

// circuitOf describes a breaker.
func (d *daemon) circuitOf(c *replica.Circuit) api.Breaker {
	out := api.Breaker{
		Owner: api.DaemonRef{Region: c.Region, Name: c.Name, Incarnation: c.Owner.String()},
		State: api.BreakerClosed, Calls: uint64(c.Calls), Errors: uint64(c.Failed),
	}
	switch c.State {
	case breaker.Open:
		out.State = api.BreakerOpen
	case breaker.HalfOpen:
		out.State = api.BreakerHalfOpen
	}
	if c.Changed {
		out.Since = new(d.now().Add(-c.For).UTC())
	}
	return out
}

// creditOf describes what was granted to this daemon, nil for what is over.
func creditOf(c *lease.LeaseState, now int64) *api.Lease {
	if c == nil || c.Until <= now && c.Denied == 0 && !c.Requesting {
		return nil
	}
	out := &api.Lease{
		Granted: c.Granted, Used: c.Used, Returned: c.Returned, Left: c.Left, Until: overage.UnixMs(c.Until), Requested: c.Requesting,
	}
	if c.Denied > 0 {
		out.Denied, out.DeniedUntil = &c.Denied, new(time.UnixMilli(now).Add(c.DeniedFor).UTC())
	}
	return out
}

// bank describes what this daemon knows as the home.
func (x *explainer) bank(out *api.StrictKey, e *lease.Explanation, now int64) {
	b, limit := e.Owned, quota.Of(&e.Limit).Capacity()
	out.Source = api.SourceOwner
	out.Ballot = &api.BallotState{Round: b.Ballot.Round, Owner: x.ref(b.Ballot.Owner)}
	used := limit - min(limit, b.Left)
	m := &api.WatermarkState{Limit: &limit, Consumed: &used, Watermark: new(min(used+b.Room, limit))}
	switch {
	case quota.Of(&e.Limit).Drains():
		m.Drained = drainedAt(b.Watermark, now)
	case !quota.Of(&e.Limit).Stamped():
		m.Window, m.Consumed, m.Watermark = overage.UnixMs(b.Window), &b.Consumed, &b.Watermark
	}
	out.Watermark = m
	for _, g := range b.Grantees {
		if len(out.Leases) == maxBatches {
			out.Omitted = len(b.Grantees) - maxBatches
			break
		}
		out.Leases = append(out.Leases, api.GrantedLease{Lessee: x.ref(g.Lessee), Granted: g.Granted, Returned: g.Returned})
	}
}

// drainedAt is when all that a mark lets be in use will have drained, nil for what
// has.
func drainedAt(nanos uint64, now int64) *time.Time {
	if nanos > 1<<62 || int64(nanos/1e6) <= now {
		return nil
	}
	return new(time.Unix(0, int64(nanos)).UTC())
}

// record describes what this daemon's replica holds of a ledger. It returns false
// when that is nothing.
func (x *explainer) record(out *api.StrictKey, e *lease.Explanation, now int64) bool {
	var held sticky.Record
	var ok bool
	x.d.strict.acceptor.do(func(r *quorum.Acceptor) { held, ok = r.Record(e.Watermarks) })
	if !ok || !e.Owner.Own {
		return false
	}
	l, limit := &e.Limit, quota.Of(&e.Limit).Capacity()
	out.Source = api.SourceAcceptor
	if held.Ballot.Owner != 0 {
		out.Ballot = &api.BallotState{Round: held.Ballot.Round, Owner: x.ref(held.Ballot.Owner)}
	}
	m := &api.WatermarkState{Limit: &limit}
	switch {
	case quota.Of(l).Drains():
		for _, k := range held.Watermarks {
			if at := drainedAt(k.Amount, now); at != nil && (m.Drained == nil || at.After(*m.Drained)) {
				m.Drained = at
			}
		}
	case quota.Of(l).Stamped():
		m.Watermark = new(uint64)
		for _, k := range held.Watermarks {
			if k.End > now {
				*m.Watermark = min(*m.Watermark+k.Amount, limit)
			}
		}
	default:
		window := now - now%l.Window()
		m.Window, m.Watermark = overage.UnixMs(window), new(held.Watermarks.Amount(window))
	}
	out.Watermark = m
	return true
}
