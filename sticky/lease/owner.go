package lease

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
)

// owner is the state of a key at its owner. Rights are consumed when they are
// granted.
type owner struct {
	account  quota.Account // of the whole limit
	window   int64         // of account, for fixed and sliding windows
	proposer quorum.Proposer
	others   sticky.Watermarks // consumption by other owners that account counts
	proposed time.Duration     // when the Accepts under way were first sent
	took     time.Duration     // how long the latest majority took
	ready    bool              // a majority answered: account counts all other consumption
	reserved uint64            // below the watermark, set aside for calls of this daemon
	grantees []grantee
	queue    []queued
	burst    rateMeter // of burstInterval
}

// grantee is a daemon with rights that this owner granted.
type grantee struct {
	daemon          crdt.Incarnation
	requestID       uint64 // of the latest request
	window, until   int64  // of the grants, and when they end
	total, returned uint64 // of window
	requestedAt     time.Duration
}

// queued is a request that waits for a watermark.
type queued struct {
	request sticky.LeaseRequest
	at      time.Duration
}

// maxGrantees bounds the daemons with grants of one owner.
const maxGrantees = 4_096

// own returns the owner state of an entry and makes it if there is none.
func (t *Table) own(e *entry) *owner {
	if e.owner == nil {
		term := 1 + t.terms*uint64(max(t.env.Shards, 1)) + uint64(t.env.Shard)
		t.terms++
		e.owner = &owner{proposer: quorum.Proposer{Term: term}}
		t.proposing[term] = e
	}
	return e.owner
}

// disown forgets the owner state of an entry. The voters have its watermark.
func (t *Table) disown(e *entry) {
	if e.owner != nil {
		delete(t.proposing, e.owner.proposer.Term)
		e.owner = nil
	}
}

// over reports whether nothing of the owner state can matter any more.
func (o *owner) over(now int64) bool {
	if len(o.queue) > 0 || o.proposer.Busy() ||
		slices.ContainsFunc(o.proposer.Held(), func(m sticky.Watermark) bool { return now < m.End }) {
		return false
	}
	// Totals must not start again while a lessee still adds to them.
	return !slices.ContainsFunc(o.grantees, func(g grantee) bool { return now < g.until+keptAfterEnd })
}

// accountUntil returns the account for rights that are used until an instant.
// More than a step of a bucket away, it has at least as much in use as the
// bucket refills until then.
func (o *owner) accountUntil(l *rules.Limit, now, until int64) quota.Account {
	return o.account.Held(l, now, until-now-quota.Of(l).Step())
}

// left returns the rights of the limit that are not consumed or set aside, for
// use until an instant.
func (o *owner) left(l *rules.Limit, now, until int64) uint64 {
	a := &o.account
	if quota.Of(l).Drains() {
		held := o.accountUntil(l, now, until)
		a = &held
	}
	left := a.Left(l, quota.Of(l).Full(), now)
	return left - min(left, o.reserved)
}

// room returns the rights below the watermark that are not consumed or set
// aside, for use until an instant.
func (o *owner) room(l *rules.Limit, now, until int64) uint64 {
	a, at := &o.account, spentAt(l, now, until)
	if quota.Of(l).Drains() {
		held := o.accountUntil(l, now, until)
		a = &held
	}
	room := a.Room(l, now, at, o.watermark(a.Watermark(l, now, at, 0).Window))
	return room - min(room, o.reserved)
}

// spend consumes rights that count from an instant on.
func (o *owner) spend(l *rules.Limit, at Now, from int64, n uint64) {
	o.account.SpendAt(l, at.Millis, from, n)
	o.burst.add(at.Mono, burstInterval, n)
}

// grantee returns the entry of a daemon, nil if there are too many.
func (o *owner) grantee(daemon crdt.Incarnation, now int64) *grantee {
	for i := range o.grantees {
		if o.grantees[i].daemon == daemon {
			return &o.grantees[i]
		}
	}
	if len(o.grantees) == maxGrantees {
		o.grantees = slices.DeleteFunc(o.grantees, func(g grantee) bool { return now >= g.until+keptAfterEnd })
	}
	if len(o.grantees) == maxGrantees {
		return nil
	}
	o.grantees = append(o.grantees, grantee{daemon: daemon})
	return &o.grantees[len(o.grantees)-1]
}

// requesters counts the daemons that sent a request in the last within, at
// least one.
func (o *owner) requesters(mono, within time.Duration) uint64 {
	n := uint64(0)
	for i := range o.grantees {
		if mono-o.grantees[i].requestedAt < within {
			n++
		}
	}
	return max(n, 1)
}

// surplus returns how many of the rights left a lessee gets on top of its
// need: extra rights, or prefetched ones if these are more.
func (o *owner) surplus(q *sticky.LeaseRequest, left uint64, mono time.Duration) uint64 {
	return max(min(q.Extra, left/(2*o.requesters(mono, time.Second))), min(q.Prefetch, o.keep(left, mono)))
}

// keep returns how many of the rights left each lessee may keep unused.
func (o *owner) keep(left uint64, mono time.Duration) uint64 {
	return left / (prefetchPart * o.requesters(mono, 2*prefetchInterval))
}
