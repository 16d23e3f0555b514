package report

import (
	"fmt"
	"time"

	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/lease"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// maxLeases bounds the leases of an answer.
const maxLeases = 32

// strictKey describes a strict key or its regional reserve, nil for none.
func (x *explainer) strictKey(e *lease.Explanation, st *node.Status, now int64, reserve bool) *api.StrictKey {
	if e == nil {
		return nil
	}
	v := x.r.Strict.Routing()
	out := &api.StrictKey{Layout: v.Number(), Region: e.Owner.Region, Pinned: e.Pinned, Self: e.Owner.Self}
	if e.Owner.Incarnation != 0 {
		ref := x.ref(e.Owner.Incarnation)
		ref.Region, ref.Name = e.Owner.Region, e.Owner.Name
		out.Owner = &ref
	}
	out.WhyNot = unreachable(e, v, st, reserve)
	out.Reachable = out.WhyNot == ""
	if !e.Owner.Self {
		for _, c := range x.r.Strict.Circuits() {
			if c.Owner == e.Owner.Incarnation {
				out.Breaker = new(x.r.breaker(&c))
			}
		}
	}
	out.Lease = leaseOf(e.Lease, now)
	switch {
	case e.Owned != nil:
		x.setOwned(out, e, now)
	case x.setStored(out, e, now):
	case e.Lease != nil && e.Lease.From != 0:
		out.Source = api.SourceGrants
		out.Ballot = &api.BallotState{Round: e.Lease.Round, Owner: x.ref(e.Lease.From)}
	}
	return out
}

// unreachable returns why the owner of a key would not decide, "" if it would.
func unreachable(e *lease.Explanation, v *route.Routing, st *node.Status, reserve bool) string {
	failed := st.Degraded == node.OwnerUnreachable
	if reserve {
		failed = st.Gate == node.FailureGate
	}
	switch {
	case e.Owner.Lost != 0:
		return fmt.Sprintf("no daemon knows what was admitted in windows that began before %s",
			time.UnixMilli(e.Owner.Lost).UTC().Format(time.RFC3339))
	case e.Owner.Incarnation == 0:
		return fmt.Sprintf("no voter of %s is live", e.Owner.Region)
	case e.Owner.Self && v.Live() < v.Majority():
		return fmt.Sprintf("%d of the %d voters of %s are live, want at least %d", v.Live(), len(v.Voters()), e.Owner.Region, v.Majority())
	case e.Owner.Self && failed:
		return "no majority of the voters has answered in time"
	case e.Owner.Self:
		return ""
	case !e.Open:
		return "its circuit breaker is open"
	case failed:
		return fmt.Sprintf("it has not answered within %v", e.Within.Round(time.Millisecond))
	}
	return ""
}

// breaker describes the circuit breaker to an owner.
func (r *Report) breaker(c *replica.Circuit) api.Breaker {
	out := api.Breaker{
		Owner: api.DaemonRef{Region: c.Region, Name: c.Name, Incarnation: c.Owner.String()},
		State: api.BreakerState(c.State.String()), Calls: uint64(c.Calls), Errors: uint64(c.Failed),
	}
	if c.Changed {
		out.Since = new(r.Wall().Add(-c.For).UTC())
	}
	return out
}

// leaseOf describes the lease of this daemon, nil without a current one.
func leaseOf(c *lease.LeaseState, now int64) *api.Lease {
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

// setOwned sets the state of a key that this daemon owns.
func (x *explainer) setOwned(out *api.StrictKey, e *lease.Explanation, now int64) {
	b, f := e.Owned, quota.Of(&e.Limit)
	limit := f.Capacity()
	out.Source = api.SourceOwner
	out.Ballot = &api.BallotState{Round: b.Ballot.Round, Owner: x.ref(b.Ballot.Owner)}
	used := limit - min(limit, b.Left)
	m := &api.WatermarkState{Limit: &limit, Consumed: &used, Watermark: new(min(used+b.Room, limit))}
	switch {
	case f.Drains():
		m.Drained = drainedAt(b.Watermark, now)
	case !f.Stamped():
		m.Window, m.Consumed, m.Watermark = overage.UnixMs(b.Window), &b.Consumed, &b.Watermark
	}
	out.Watermark = m
	for _, g := range b.Grantees[:min(len(b.Grantees), maxLeases)] {
		out.Leases = append(out.Leases, api.GrantedLease{Lessee: x.ref(g.Lessee), Granted: g.Granted, Returned: g.Returned})
	}
	out.Omitted = len(b.Grantees) - len(out.Leases)
}

// drainedAt returns when the hits below a watermark will have drained, nil if
// they have.
func drainedAt(nanos uint64, now int64) *time.Time {
	if nanos > 1<<62 || int64(nanos/1e6) <= now {
		return nil
	}
	return new(time.Unix(0, int64(nanos)).UTC())
}

// setStored sets the state of a key that the acceptor of this daemon stores. It
// returns false if the acceptor does not.
func (x *explainer) setStored(out *api.StrictKey, e *lease.Explanation, now int64) bool {
	var held sticky.Record
	var ok bool
	x.r.Strict.Acceptor(func(a *quorum.Acceptor) { held, ok = a.Record(e.Watermarks) })
	if !ok || !e.Owner.Own {
		return false
	}
	f := quota.Of(&e.Limit)
	limit := f.Capacity()
	out.Source = api.SourceAcceptor
	if held.Ballot.Owner != 0 {
		out.Ballot = &api.BallotState{Round: held.Ballot.Round, Owner: x.ref(held.Ballot.Owner)}
	}
	m := &api.WatermarkState{Limit: &limit}
	switch {
	case f.Drains():
		for _, k := range held.Watermarks {
			if at := drainedAt(k.Amount, now); at != nil && (m.Drained == nil || at.After(*m.Drained)) {
				m.Drained = at
			}
		}
	case f.Stamped():
		m.Watermark = new(uint64)
		for _, k := range held.Watermarks {
			if k.End > now {
				*m.Watermark = min(*m.Watermark+k.Amount, limit)
			}
		}
	default:
		window := now - now%e.Limit.Window()
		m.Window, m.Watermark = overage.UnixMs(window), new(held.Watermarks.Amount(window))
	}
	out.Watermark = m
	return true
}
