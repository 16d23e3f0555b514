package lease

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

const (
	// headroomFor is how long a watermark should be ahead of consumption.
	headroomFor = 50 * time.Millisecond
	// advanceFor is how recent the last hit must be for a watermark to be
	// advanced ahead of need.
	advanceFor = 200 * time.Millisecond
)

// watermarksKey returns the key under which the voters of a region store the
// watermarks of an entry. Where each region has an owner, it is another one in
// each, since a change of layout merges the watermarks of all regions. Those of
// a regional reserve have the same key in all regions, so that consumption
// counts which moves with a layout.
func (e *entry) watermarksKey(region string) crdt.Key {
	key := e.id.key
	if e.id.perRegion {
		key ^= crdt.Key(rendezvous.Hash("region", region) << crdt.ShardBits)
	}
	return key
}

// homed reports whether the region is the owner of an entry by a routing. The
// next layout may have moved it to another region, whose voters copied the
// watermarks of these and nothing that came after.
func homed(t *Table, e *entry, l *rules.Limit, v *route.Routing) bool {
	return v.Owner(e.id.key, uint64(e.rule), e.regional(), leasedSince(l, t.at.Millis)).Own
}

// watermark returns the amount that a majority stored for a window.
func (o *owner) watermark(window int64) uint64 { return o.proposer.Held().Amount(window) }

// headroom returns how many hits the watermark should be ahead of consumption;
// least is Config.Headroom.
func (o *owner) headroom(l *rules.Limit, mono time.Duration, least uint64) uint64 {
	capacity := quota.Of(l).Capacity()
	most := max(least, capacity/20)
	fast := o.burst.within(mono, headroomFor)
	if quota.Of(l).Stamped() {
		return min(most, fast) // each of its steps has a watermark of its own
	}
	return min(most, max(fast, min(least, capacity/50)))
}

// advance advances the watermark for local rights that are used now and remote
// ones that are used until an instant, or ahead of need if none lack.
func (t *Table) advance(e *entry, l *rules.Limit, v *route.Routing, local, remote uint64, until int64) {
	o := e.owner
	waits := len(o.queue) > 0 || slices.ContainsFunc(e.waiters, func(w waiter) bool { return w.state == waiting })
	switch {
	case waits && (local > 0 || remote > 0 || !o.ready):
		t.propose(e, l, v, local, remote, until)
	case o.ready: // an owner that lost its ballot waits for the next request
		t.advanceAhead(e, l, v)
	}
}

// advanceAhead advances the watermark before it is used up, while hits come.
func (t *Table) advanceAhead(e *entry, l *rules.Limit, v *route.Routing) {
	o, now := e.owner, t.at.Millis
	if o.proposer.Busy() || o.burst.within(t.at.Mono, advanceFor) == 0 {
		return
	}
	if headroom := o.headroom(l, t.at.Mono, t.cfg.Headroom); headroom > 1 && o.room(l, now, now) < headroom/2 && o.left(l, now, now) > headroom/2 {
		t.propose(e, l, v, 0, 0, 0)
	}
}

// propose asks the voters for watermarks with headroom beyond the rights that
// lack them.
func (t *Table) propose(e *entry, l *rules.Limit, v *route.Routing, local, remote uint64, until int64) {
	o, now, f := e.owner, t.at.Millis, quota.Of(l)
	headroom, account := o.headroom(l, t.at.Mono, t.cfg.Headroom), o.account
	if f.Drains() {
		account = o.accountUntil(l, now, until)
	}
	next := func(at int64, lack uint64) sticky.Watermark {
		n := min(sat.Add(sat.Add(lack, o.reserved), headroom), account.Left(l, f.Full(), now))
		m := account.Watermark(l, now, at, n)
		if f.Drains() {
			m.Amount += uint64(o.drainMargin().Nanoseconds())
			m.End += o.drainMargin().Milliseconds()
		}
		return m
	}
	var want sticky.Watermarks
	if f.Stamped() {
		want = sticky.Watermarks{next(now, local)}
		if remote > 0 {
			if m := next(spentAt(l, now, until), remote); m.Window != want[0].Window {
				want = append(want, m)
			} else {
				want[0] = next(now, sat.Add(local, remote))
			}
		}
	} else {
		want = sticky.Watermarks{next(now, sat.Add(local, remote))}
	}
	if !o.proposer.Busy() {
		o.proposed = t.at.Mono
	}
	o.proposer.Want(t.env.Self, now, o.others, want)
	t.activate(e)
	t.sendAccepts(e, l, v)
}

// drainMargin is how much later than needed a bucket's watermark is: the bucket
// drains while the watermark is stored, which then must still suffice.
func (o *owner) drainMargin() time.Duration {
	return min(max(headroomFor, 2*o.took), 10*headroomFor)
}

// sendAccepts sends the Accepts that are due to the voters. Under a layout that
// is not active it sends none: how many reserves there are is not known yet.
func (t *Table) sendAccepts(e *entry, l *rules.Limit, v *route.Routing) {
	if !v.Active() || !homed(t, e, l, v) {
		return
	}
	key := e.watermarksKey(t.env.Region)
	e.owner.proposer.Accepts(t.at.Mono, v, func(to crdt.Incarnation, a sticky.Accept) {
		a.Key = key
		m := t.to(to)
		m.Accepts = append(m.Accepts, a)
		t.stats.Accepts++
	})
}

// accepted handles a voter's answer. It reports whether the answer is to an
// Accept of this table.
func (t *Table) accepted(from crdt.Incarnation, a *sticky.Accepted) bool {
	e, v := t.proposing[a.Ballot.Term], t.env.Owners.Routing()
	if e == nil || v == nil || e.watermarksKey(t.env.Region) != a.Key ||
		!slices.ContainsFunc(v.Voters(), func(s route.Voter) bool { return s.ID == a.Voter && s.Incarnation == from }) {
		return false
	}
	r := t.ruleOf(e)
	if r == nil {
		return false
	}
	switch o := e.owner; o.proposer.Accepted(a, v) {
	case quorum.Chosen:
		o.ready, o.took = true, t.at.Mono-o.proposed
		t.stats.Accepted++
		t.serve(e, r, v)
	case quorum.Crowded:
		t.dismiss(e, sticky.Full)
	case quorum.Lost:
		t.stats.Lost++
		if t.adopt(e, r); e.owner != nil {
			t.serve(e, r, v)
		}
	}
	t.activate(e)
	return true
}

// adopt starts the account again with all that other owners may have consumed.
func (t *Table) adopt(e *entry, r *rules.Rule) {
	o, l := e.owner, t.limit(r, e.reserve)
	if l == nil { // the consumption could not be counted, and no rights are granted
		t.disown(e)
		return
	}
	o.account, o.ready, o.others = quota.Account{}, false, slices.Clone(o.proposer.Known())
	for _, m := range o.others {
		o.account.Adopt(l, t.at.Millis, m)
	}
	o.window = t.at.Millis - t.at.Millis%l.Window()
}

// roll moves the account to the window of now, of which other owners may have
// consumed some already.
func (o *owner) roll(l *rules.Limit, now int64) {
	window, former := now-now%l.Window(), o.window
	if !quota.Of(l).Windowed() || window <= former {
		return
	}
	o.window = window
	o.account.Left(l, quota.Of(l).Full(), now)
	for _, m := range o.others {
		if m.Window > former && m.Window <= window { // that of the window before is weighted
			o.account.Adopt(l, now, m)
		}
	}
}
