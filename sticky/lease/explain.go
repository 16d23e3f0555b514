package lease

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// Explanation is the state of a strict key, or of its regional reserve, at one
// daemon.
type Explanation struct {
	Watermarks crdt.Key // the key at the voters
	Owner      route.Owner
	Pinned     bool          // the layout pins the rule to a region
	Within     time.Duration // how long to wait for an answer of the owner
	Open       bool          // the circuit breaker lets calls pass
	// Limit is the limit of the entry.
	Limit rules.Limit
	// Lease is nil if the daemon has had no answer of an owner.
	Lease *LeaseState
	// Owned is nil if the daemon is not the owner.
	Owned *OwnerState
}

// LeaseState is the rights that owners granted the daemon.
type LeaseState struct {
	// Until is when the rights end, in Unix milliseconds.
	Until int64
	// Granted to Left count the hits of the window: Left are granted, and
	// neither used, returned nor set aside for a call.
	Granted, Used, Returned, Left uint64
	// Requesting reports that a request has no answer yet.
	Requesting bool
	// From is the owner that granted last, Round the round of its ballot.
	From  crdt.Incarnation
	Round uint64
	// Denied is the least number of hits that is denied without a request for
	// another DeniedFor, 0 for none.
	Denied    uint64
	DeniedFor time.Duration
}

// OwnerState is the state of a key at its owner.
type OwnerState struct {
	Ballot sticky.Ballot
	// Window is the window of Watermark, which quota.Watermark defines, and of
	// Consumed, the part of it that is consumed.
	Window              int64
	Watermark, Consumed uint64
	// Room is how many hits may be consumed below the watermark, Left how many
	// the limit has left.
	Room, Left uint64
	Grantees   []GranteeState // the greatest grants first
}

// GranteeState is the rights of the current window that the owner granted one
// daemon.
type GranteeState struct {
	Lessee            crdt.Incarnation
	Granted, Returned uint64
}

// Explain returns the state of a key under a rule, or of its regional reserve:
// nil if it has none. It charges nothing and is not for the decision path.
func (t *Table) Explain(at Now, key crdt.Key, r *rules.Rule, reserve bool) *Explanation {
	t.at = at
	l := t.limit(r, reserve)
	if l == nil {
		return nil
	}
	id := idOf(entryKey(key, reserve), r, reserve)
	probe := entry{id: id, rule: r.ID, reserve: reserve}
	out := &Explanation{Limit: *l, Watermarks: probe.watermarksKey(t.env.Region)}
	var v *route.Routing
	if out.Owner, v = t.ownerOf(id.key, r.ID, probe.regional(), l); v != nil {
		out.Pinned = !probe.regional() && v.Pinned(uint64(r.ID))
		out.Within, out.Open = t.env.Owners.Reach(out.Owner.Incarnation)
	}
	e := t.entries[id]
	if e != nil && e.lease.answered > 0 {
		out.Lease = e.lease.explain(l, t.at)
	}
	if e != nil && e.owner != nil && out.Owner.Self {
		out.Owned = e.owner.explain(l, t.at.Millis)
	}
	return out
}

func (x *lease) explain(l *rules.Limit, at Now) *LeaseState {
	out := &LeaseState{
		Until: x.until, Used: x.used, Left: x.left(l, at.Millis), Requesting: len(x.requests) > 0,
	}
	for _, s := range x.sources {
		out.Granted = sat.Add(out.Granted, s.total)
		out.Returned = sat.Add(out.Returned, s.returned)
		out.From, out.Round = s.owner, s.round
	}
	if x.denies(x.denied, at.Mono) {
		out.Denied, out.DeniedFor = x.denied, x.deniedUntil-at.Mono
	}
	return out
}

// explain works on a copy: reading moves no account to another window.
func (o owner) explain(l *rules.Limit, now int64) *OwnerState {
	o.roll(l, now)
	m := o.account.Watermark(l, now, now, 0)
	out := &OwnerState{
		Ballot: o.proposer.Ballot(), Window: m.Window, Watermark: o.watermark(m.Window), Consumed: m.Amount,
		Room: o.room(l, now, now), Left: o.left(l, now, now),
	}
	for _, g := range o.grantees {
		if g.total > 0 && g.window >= leaseWindow(l, now, now) {
			out.Grantees = append(out.Grantees, GranteeState{g.daemon, g.total, g.returned})
		}
	}
	slices.SortFunc(out.Grantees, func(a, b GranteeState) int {
		return cmp.Or(cmp.Compare(b.Granted, a.Granted), cmp.Compare(a.Lessee, b.Lessee))
	})
	return out
}
