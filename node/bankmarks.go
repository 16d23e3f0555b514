package node

import (
	"slices"
	"time"

	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// watermarksKey is what replicas call a ledger. One that each region has for itself is
// another in each: a layout that is put in joins what all regions know. That of a floor is
// one for all, so that what moves with a layout is counted.
func (n *Node) watermarksKey(led *ledger) crdt.Key {
	if led.name.own {
		return RegionalWatermarks(led.key, n.cfg.Region)
	}
	return led.key
}

// RegionalWatermarks returns what the replicas of a region call a ledger that each region
// has for itself.
func RegionalWatermarks(key crdt.Key, region string) crdt.Key {
	key.Lo ^= uint64(gossip.RegionIncarnation(region))
	return key
}

// raise has marks raised to what is lacked, and ahead of what is consumed. local
// hits count now, far ones until when they may be used.
func (n *Node) raise(led *ledger, l *rules.Limit, v *route.Routing, now int64, local, far uint64, until int64) {
	b := led.bank
	waits := len(b.queue) > 0 || slices.ContainsFunc(led.waiters, func(w waiter) bool { return w.state == stillWaiting })
	switch {
	case waits && (local > 0 || far > 0 || !b.taken):
		n.want(led, l, v, now, local, far, until)
	case b.taken: // a home that was replaced leaves it at that while nobody asks
		n.raiseAhead(led, l, v, now)
	}
}

// raiseAhead has marks raised before they are used up, where hits keep coming.
func (n *Node) raiseAhead(led *ledger, l *rules.Limit, v *route.Routing, now int64) {
	b := led.bank
	if b.keeper.Busy() || b.pace.within(n.at.Mono, aheadFor) == 0 {
		return
	}
	if headroom := n.headroom(b, l); headroom > 1 && b.room(l, now, now) < headroom/2 && b.left(l, now, now) > headroom/2 {
		n.want(led, l, v, now, 0, 0, 0)
	}
}

// want asks for marks of a chunk beyond what is lacked.
func (n *Node) want(led *ledger, l *rules.Limit, v *route.Routing, now int64, local, far uint64, until int64) {
	b := led.bank
	headroom, row := n.headroom(b, l), b.row
	if quota.Of(l).Drains() {
		row = b.rowUntil(l, now, until)
	}
	need := func(at int64, lack uint64) sticky.Watermark {
		m := row.Watermark(l, now, at, min(sat.Add(sat.Add(lack, b.reserved), headroom), row.Left(l, quota.Of(l).Full(), now)))
		if quota.Of(l).Drains() { // it must still do when it is held
			m.Amount += uint64(n.bucketMargin(b).Nanoseconds())
			m.End += n.bucketMargin(b).Milliseconds()
		}
		return sticky.Watermark{Window: m.Window, Amount: m.Amount, End: m.End}
	}
	watermarks := make(sticky.Watermarks, 0, 2)
	if quota.Of(l).Stamped() {
		watermarks = append(watermarks, need(now, local))
		if far > 0 {
			m := need(stampOf(l, now, until), far)
			if m.Window == watermarks[0].Window {
				watermarks[0] = need(now, sat.Add(local, far))
			} else {
				watermarks = append(watermarks, m)
			}
		}
	} else {
		watermarks = append(watermarks, need(now, sat.Add(local, far)))
	}
	if !b.keeper.Busy() {
		b.raised = n.at.Mono
	}
	b.keeper.Want(n.incarnation, now, b.others, watermarks)
	n.attend(led)
	n.sendRaises(led, v)
}

// bucketMargin is how much later than needed the marks of a bucket are: it drains
// while they are raised, and what was enough is less when they are held. The longer
// that took, the more.
func (n *Node) bucketMargin(b *bank) time.Duration { return min(max(chunkFor, 2*b.took), 10*chunkFor) }

// mayRaise reports whether the home of a ledger is in this region by the layout that its
// replicas would be asked under: in the next one it may be in another, whose replicas
// copied what these held until they were sealed, and nothing that came after.
func (l *ledger) mayRaise(v *route.Routing) bool {
	return v.Owner(l.key, uint64(l.id), l.reserve || l.name.own).Own
}

// sendRaises sends what the keeper wants to be sent.
func (n *Node) sendRaises(led *ledger, v *route.Routing) {
	if !led.mayRaise(v) {
		return
	}
	key := n.watermarksKey(led)
	led.bank.keeper.Accepts(n.at.Mono, v, func(to crdt.Incarnation, r sticky.Accept) {
		r.Key = key
		m := n.send(to)
		m.Accepts = append(m.Accepts, r)
		n.desk.counts.Accepts++
	})
}

// vote takes in a replica's answer to a raise.
func (n *Node) vote(vote *sticky.Accepted, now int64) bool {
	led := n.desk.byTerm[vote.Ballot.Term]
	if led == nil {
		return false
	}
	r := n.rules.set.Find(led.id)
	v := n.cfg.Owners.Routing()
	if !led.isOf(r) || v == nil || n.watermarksKey(led) != vote.Key {
		return false
	}
	b := n.bankOf(led)
	switch b.keeper.Accepted(vote, v) {
	case quorum.Chosen:
		b.taken, b.took = true, n.at.Mono-b.raised
		n.desk.counts.Accepted++
		n.serveBank(led, r, v, now)
	case quorum.Lost:
		n.desk.counts.Lost++
		if n.adopt(led, r, now); led.bank != nil {
			n.serveBank(led, r, v, now)
		}
	}
	n.attend(led)
	return true
}

// adopt counts all that any home may have consumed.
func (n *Node) adopt(led *ledger, r *rules.Rule, now int64) {
	b, l := led.bank, n.termsOf(r, led.reserve, now)
	if l == nil { // no home grants it now: what is known could not be counted
		n.closeBank(led)
		return
	}
	b.row, b.taken, b.others = quota.Account{}, false, slices.Clone(b.keeper.Known())
	for _, m := range b.others {
		b.row.Adopt(l, now, quota.Watermark{Window: m.Window, Amount: m.Amount, End: m.End})
	}
	b.window = now - now%l.Window()
}

// roll moves a bank to the window of now, of which another home may have consumed
// some already.
func (b *bank) roll(l *rules.Limit, now int64) {
	window := now - now%l.Window()
	if !quota.Of(l).Windowed() || window <= b.window {
		return
	}
	was := b.window
	b.window = window
	b.row.Left(l, quota.Of(l).Full(), now)
	for _, m := range b.others {
		if m.Window > was && m.Window <= window { // of the one before it is weighed
			b.row.Adopt(l, now, quota.Watermark{Window: m.Window, Amount: m.Amount, End: m.End})
		}
	}
}
