package node

import (
	"slices"
	"time"

	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// Owners says who is home. It is asked under the locks of shards and must not wait
// for one of them.
type Owners interface {
	// Routing says who is home of what, and who votes.
	Routing() *route.Routing
	// Reach says how long to wait for an answer of a daemon, and whether to ask it
	// at all: not while its circuit is open.
	Reach(of crdt.Incarnation) (wait time.Duration, open bool)
}

// OwnersConfig is how strict keys are counted.
type OwnersConfig struct {
	// Headroom is how many hits a home's marks are ahead of what it consumed, at
	// most, or a twentieth of the limit where that is more and as many come in 50 ms.
	Headroom uint64
	// Prefetch is how many rights to a key a daemon keeps that is asked for it now and
	// then, at most.
	Prefetch uint64
}

// LeaseReady is what a node wants done about strict keys.
type LeaseReady struct {
	// Messages are to be sent at once. They are the caller's. One to the node's own
	// slot is for its own daemon: raises for its replica, the rest for StepLease.
	Messages []sticky.Message
	// Answered are tickets that need not be waited for any longer.
	Answered []uint64
}

// RequestLease asks for what the hits of a call wait for: those whose status says Wait.
// It must follow a Probe of the same hits at the same instant, by whose answer
// the call does not pass without them. What comes is set aside for the ticket,
// which is the caller's number for the call, not 0, until the hits are charged or
// CancelLease. The caller probes again, with Hit.Ticket set, when LeaseReady says that the
// ticket was answered; and with one more in Hit.Failed where Status.Within has
// passed in vain.
func (n *Node) RequestLease(at Instant, h []Hit, out []Status, ticket uint64) {
	now := n.millis(at)
	for i := range h {
		if h[i].Limit == nil || !n.keys.owns(h[i].Key) || !out[i].Wait {
			continue
		}
		n.seek(&h[i], &out[i], ticket, now)
	}
}

// seek asks for what one hit waits for.
func (n *Node) seek(h *Hit, st *Status, ticket uint64, now int64) {
	reserve := st.stage > 0
	led := n.open(ledgerKey(h.Key, reserve), h.Rule, reserve)
	if led == nil || len(led.waiters) >= maxWaiters {
		n.desk.answered = append(n.desk.answered, ticket)
		return
	}
	n.desk.counts.Sought++
	hits := sat.Add(st.ahead, h.N)
	if h.Peek {
		hits = 0
	}
	i := led.waiter(ticket)
	if i >= 0 && led.waiters[i].state != stillWaiting {
		n.release(led, i)
		i = -1
	}
	if i < 0 {
		led.waiters = append(led.waiters, waiter{ticket: ticket})
		i = len(led.waiters) - 1
	}
	w := &led.waiters[i]
	if w.hits = max(w.hits, hits); w.ask != 0 && led.credit.underWay(w.ask) {
		return // of an ask that was sent before
	}
	n.attend(led)
	led.credit.came(n.at.Mono, hits)
	if st.self {
		if v := n.cfg.Owners.Routing(); v != nil {
			n.bankOf(led)
			n.serveBank(led, h.Rule, v, now)
		}
		return
	}
	if !n.askOwner(led, h.Rule, now) {
		w.state = unanswered
		n.desk.answered = append(n.desk.answered, ticket)
	}
}

// CancelLease gives up what was set aside for a ticket and not charged. A call that
// sought must end with it, whatever became of it. hits are those of the call.
func (n *Node) CancelLease(at Instant, h []Hit, ticket uint64) {
	now := n.millis(at)
	for i := range h {
		if h[i].Limit == nil || !n.keys.owns(h[i].Key) || !n.homed(&h[i]) {
			continue
		}
		for _, reserve := range [...]bool{false, true} {
			led := n.ledgerAt(&h[i], reserve)
			if led == nil {
				continue
			}
			if at := led.waiter(ticket); at >= 0 {
				unused := led.waiters[at].state == granted && led.waiters[at].hits > 0
				n.release(led, at)
				if unused && len(led.waiters) == 0 && len(led.credit.asks) == 0 && n.batch(&led.credit) == 0 {
					n.giveBack(led, h[i].Limit, now, n.kept(&led.credit, h[i].Limit))
				}
			}
		}
	}
}

// release forgets a waiter, and frees what was set aside for it.
func (n *Node) release(led *ledger, i int) {
	w := &led.waiters[i]
	switch {
	case w.state != granted:
	case w.banked && led.bank != nil:
		led.bank.reserved -= min(led.bank.reserved, w.hits)
	case !w.banked:
		led.credit.reserved -= min(led.credit.reserved, w.hits)
	}
	led.waiters = append(led.waiters[:i], led.waiters[i+1:]...)
}

// StepLease takes in what another daemon said about strict keys: the asks, grants and
// votes about keys that this node owns. Raises, copies, pages and layouts are the
// replica's. It returns how many items were refused.
func (n *Node) StepLease(at Instant, m *sticky.Message) (refused int) {
	if n.cfg.Owners == nil {
		return len(m.Requests) + len(m.Grants) + len(m.Accepted)
	}
	_ = n.clock.Observe(at, m.Stamp) // the replication reports clocks that are off
	n.at, n.now = Instant{}, 0       // it may have moved
	now := n.millis(at)
	for i := range m.Requests {
		if a := &m.Requests[i]; n.keys.owns(a.Key) && !n.heedAsk(m.From, a, now) {
			refused++
		}
	}
	for i := range m.Grants {
		if g := &m.Grants[i]; n.keys.owns(g.Key) && (g.Owner != m.From || !n.mayGrant(g) || !n.grant(g, now)) {
			refused++
		}
	}
	for i := range m.Accepted {
		if v := &m.Accepted[i]; n.keys.owns(v.Key) && (!n.seated(m.From, v.Voter) || !n.vote(v, now)) {
			refused++
		}
	}
	n.desk.counts.Rejected += uint64(refused)
	return refused
}

// seated reports whether a daemon is the replica that it votes for.
func (n *Node) seated(from crdt.Incarnation, voter uint64) bool {
	v := n.cfg.Owners.Routing()
	return v != nil && slices.ContainsFunc(v.Voters(), func(s route.Voter) bool { return s.ID == voter && s.Incarnation == from })
}

// mayGrant reports whether a grant is of a daemon that may be home.
func (n *Node) mayGrant(g *sticky.LeaseGrant) bool {
	r, v := n.ruleShared(g.Rule), n.cfg.Owners.Routing()
	return r != nil && v != nil && v.Candidate(g.Key, uint64(r.ID), regional(r.Limit, g.Reserve), g.Owner)
}

// heedAsk takes in an ask: it is answered, now or when marks are there, or passed on
// to the home in this region.
func (n *Node) heedAsk(from crdt.Incarnation, a *sticky.LeaseRequest, now int64) bool {
	if a.Lessee != from && a.Hops == 0 || a.Lessee == n.incarnation || a.Hops > 1 || !n.replica.engine.Live(a.Lessee) {
		return false
	}
	r := n.ruleShared(a.Rule)
	if r == nil || n.termsOf(r, a.Reserve, now) == nil {
		n.refuseAsk(a, sticky.UnknownRule)
		return true
	}
	owner, v := n.ownerOf(a.Key, r.ID, regional(r.Limit, a.Reserve))
	switch {
	case v == nil || a.Hops > 0 && !v.Seated() || !owner.Self && a.Hops == 0 && (!owner.Own || owner.Incarnation == 0):
		n.refuseAsk(a, sticky.NotOwner)
		return true
	case !owner.Self && a.Hops == 0:
		on := *a
		on.Hops++
		m := n.send(owner.Incarnation)
		m.Requests = append(m.Requests, on)
		return true
	}
	led := n.open(a.Key, r, a.Reserve)
	if led == nil || led.shared != a.Rule || led.reserve != a.Reserve {
		n.refuseAsk(a, sticky.Full)
		return led == nil
	}
	n.heedAtOwner(led, r, v, a, now)
	return true
}

// heedAtOwner takes in an ask of a ledger that this daemon is home of.
func (n *Node) heedAtOwner(led *ledger, r *rules.Rule, v *route.Routing, a *sticky.LeaseRequest, now int64) {
	b := n.bankOf(led)
	l := n.termsOf(r, led.reserve, now)
	b.roll(l, now)
	h := b.holder(a.Lessee, now)
	if h == nil {
		n.refuseAsk(a, sticky.Full)
		return
	}
	h.at = n.at.Mono
	if a.Hops == 0 && a.Owner == n.incarnation && a.Window == h.window && a.Returned > h.returned && a.Returned <= h.total {
		back := a.Returned - h.returned
		h.returned = a.Returned
		window := h.window
		if quota.Of(l).Stamped() {
			window -= quota.Of(l).WatermarkStep() // until is where the step ends
		}
		b.row.Unspend(l, window, back)
	}
	switch {
	case a.ID == 0:
	case a.Hops > 0: // by whoever passed it on: it must not use up the holder's numbers
		n.enqueue(led, *a)
	case a.ID <= h.asked:
		n.desk.counts.Replayed++
		again := *a
		again.Want, again.Need, again.Extra, again.Prefetch = 0, 0, 0, 0
		n.enqueue(led, again)
	default:
		h.asked = a.ID
		n.enqueue(led, *a)
	}
	n.serveBank(led, r, v, now)
}

// enqueue has an ask answered in its turn.
func (n *Node) enqueue(led *ledger, a sticky.LeaseRequest) {
	b := led.bank
	if len(b.queue) >= maxQueued {
		n.refuseAsk(&a, sticky.Full)
		return
	}
	b.queue = append(b.queue, queued{a, n.at.Mono})
	n.attend(led)
}

// ruleShared returns the rule that daemons call by a name, nil when none is in force.
func (n *Node) ruleShared(name uint64) *rules.Rule {
	if n.replica == nil {
		return nil
	}
	return n.rules.shared[name]
}

// LeaseReady returns what is to be done since it was called last. It must be called
// after each RequestLease, CancelLease, StepLease, Charge and Tick. It is cheap when nothing is.
func (n *Node) LeaseReady(at Instant) LeaseReady {
	d := &n.desk
	if len(d.out) == 0 && len(d.answered) == 0 {
		return LeaseReady{}
	}
	e := LeaseReady{d.out, d.answered}
	d.out, d.answered = nil, nil
	stamp := n.clock.Now(at)
	number := uint64(0)
	if v := n.cfg.Owners.Routing(); v != nil {
		number = v.Number()
	}
	for i := range e.Messages {
		e.Messages[i].Stamp, e.Messages[i].Number = stamp, number
	}
	return e
}

// HasLeaseReady reports whether LeaseReady would return any.
func (n *Node) HasLeaseReady() bool { return len(n.desk.out) > 0 || len(n.desk.answered) > 0 }

// tickDesk does what time calls for about strict keys.
func (n *Node) tickDesk(now int64) {
	d := &n.desk
	v := n.cfg.Owners.Routing()
	kept := d.active[:0]
	for _, led := range d.active {
		if n.tickLedger(led, v, now) {
			kept = append(kept, led)
		} else {
			led.active = false
		}
	}
	clear(d.active[len(kept):])
	d.active = kept
	n.sweepLedgers(max(len(d.all)/64, sweepAtLeast))
}

// tickLedger sends again what was lost, and gives back what nobody uses. It
// reports whether the ledger waits for anything.
func (n *Node) tickLedger(led *ledger, v *route.Routing, now int64) bool {
	r := n.rules.set.Find(led.id)
	if !led.isOf(r) || v == nil {
		return len(led.waiters) > 0
	}
	if b := led.bank; b != nil {
		if owner, _ := n.ownerOf(led.key, led.id, regional(r.Limit, led.reserve)); owner.Self || len(b.queue) > 0 {
			n.bankOf(led)
			n.serveBank(led, r, v, now)
			n.sendRaises(led, v)
		}
	}
	c := &led.credit
	if len(led.waiters) > 0 {
		n.askOwner(led, r, now)
	} else if len(c.asks) > 0 {
		n.forgetLost(c, 0, maxWithin)
	}
	idle := n.at.Mono-c.touched >= idleAfter && len(led.waiters) == 0 && len(c.asks) == 0
	if keep := n.kept(c, r.Limit); idle && c.left(r.Limit, now) > keep {
		n.giveBack(led, r.Limit, now, keep)
	}
	busy := led.bank != nil && (len(led.bank.queue) > 0 || led.bank.keeper.Busy())
	return busy || !idle && now < c.until || len(led.waiters) > 0 || len(c.asks) > 0
}

// homed reports whether a hit is decided by rights that a home grants.
func (n *Node) homed(h *Hit) bool {
	return n.cfg.Owners != nil && h.Rule != nil && h.Limit == h.Rule.Limit && h.Limit.Homed()
}

// reserveKey names the ledger of a key's floor.
func reserveKey(k crdt.Key) crdt.Key {
	return crdt.Key{Hi: k.Hi, Lo: k.Lo ^ 0x666c6f6f72} // the shard is that of the key
}
