package node

import (
	"math"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// Receipt is what one descriptor of an admitted call was charged: what it takes
// to give it back. One without hits gives nothing back. Only the node that wrote
// a receipt may be handed it, and once: that is up to the driver.
type Receipt struct {
	Key crdt.Key
	// ID names the rule, 0 for an override, and Rule the grid it counts on too
	// (see SharedRule).
	ID   rules.ID
	Rule uint64
	// Window is the start of the label that the hits were counted under. Length
	// is its length, Until the instant from which they cannot be given back,
	// in Unix milliseconds.
	Window, Length, Until int64
	Hits                  uint64
	// Alone says that nobody else was told of the hits.
	Alone bool
}

// Refunded is what became of a receipt.
type Refunded struct {
	// Hits is how many were given back.
	Hits uint64
	// Expired says that the hits weigh nothing any more: their label is over,
	// or their rule is gone or counts on another grid. None were given back.
	Expired bool
}

// Receipts writes what this node charged for the hits of an admitted call into
// to, which is as long as h and belongs to the caller. It must follow the Charge
// of the same hits at the same instant. There is no receipt for what shares a
// counter with other keys, and none where others could not be told of the hits:
// the answer is degraded by keys_full or cells_full then, or was.
func (n *Node) Receipts(at Instant, h []Hit, out []Status, to []Receipt) {
	now := n.millis(at)
	for i := range h {
		st := &out[i]
		if h[i].Limit == nil || !n.owns(h[i].Key) || h[i].N == 0 || st.homed && st.led == nil ||
			!st.charge || !st.passed || st.ref.where != inLive {
			continue
		}
		e := n.live.at(st.ref.index)
		if e.inherited() {
			continue
		}
		l := h[i].Limit
		r := Receipt{Key: h[i].Key, Hits: h[i].N, Alone: n.replica == nil || l.Scope == rules.NodeLocal}
		r.Window, r.Length, _ = quota.Of(l).Shared(&e.cell, now)
		r.Until = quota.Of(l).RefundEnd(r.Window)
		if h[i].Rule != nil && l == h[i].Rule.Limit {
			r.ID, r.Rule = h[i].Rule.ID, SharedRule(h[i].Rule)
		}
		to[i] = r
	}
}

// Refund gives back up to hits of what a receipt of this node says: in the label
// that they were counted under, and never more than was counted there. What it
// gives back it takes off the key's cell, tells others, and returns to the rights
// of this daemon.
//
// Only rights of windows come back, to the label that they were used in. What a
// row used of a bucket or a log stays used, for the rights to those have no
// labels: it drains or leaves the window as if nothing had been given back. A
// row that is not made yet will count what was admitted and not refunded.
func (n *Node) Refund(at Instant, r *Receipt, hits uint64) Refunded {
	now := n.millis(at)
	l, rule := n.limitOfReceipt(r)
	if l == nil || !n.owns(r.Key) || !quota.Of(l).Refundable(now, r.Window) {
		return Refunded{Expired: true}
	}
	hits = min(hits, r.Hits)
	i := n.live.find(r.Key)
	switch {
	case !r.Alone && n.replica != nil:
		hits = n.replica.engine.Refund(n.at.Mono, r.Key, r.Window, hits)
	case i < 0: // what was charged has drained, or is forgotten
		return Refunded{Expired: true}
	}
	if i < 0 || hits == 0 {
		return Refunded{Hits: hits}
	}
	e := n.live.at(i)
	n.withdraw(e, l, r.Window, hits, now)
	h := Hit{Key: r.Key, Limit: l, Rule: rule}
	if n.homed(&h) {
		n.refundHomed(&h, r.Window, hits, now)
		return Refunded{Hits: hits}
	}
	if a := n.extras.account(e.extra); a != nil && n.bounded(&h) {
		a.Left(l, n.base(rule, now), now) // moves it to the window of now
		a.Return(l, r.Window, hits)
	}
	return Refunded{Hits: hits}
}

// limitOfReceipt returns the limit to fold by and its rule, nil for an override.
// There is none when the rule is not in force any more, or counts on another
// grid.
func (n *Node) limitOfReceipt(r *Receipt) (*rules.Limit, *rules.Rule) {
	if r.ID == 0 {
		if r.Length < 1_000 || r.Length%1_000 != 0 || r.Length/1_000 > math.MaxUint32 {
			return nil, nil
		}
		return &rules.Limit{Unit: rules.Second, Multiplier: uint32(r.Length / 1_000)}, nil
	}
	rule := n.set.Find(r.ID)
	if rule == nil || rule.Limit == nil || SharedRule(rule) != r.Rule {
		return nil, nil
	}
	return rule.Limit, rule
}

// withdraw takes hits off an entry that were given back here or elsewhere. A
// window's count never falls below what is known of its label, whatever was said
// of it in which order: from a count that is far from the limit it is concluded
// that the rights of this daemon cover a hit.
func (n *Node) withdraw(e *entry, l *rules.Limit, window int64, hits uint64, now int64) {
	windowed := quota.Of(l).Windowed()
	if windowed && n.replica != nil && l.Scope != rules.NodeLocal {
		held, known := quota.Of(l).Held(&e.cell, window), n.replica.engine.Total(e.key, window)
		hits = min(hits, held-min(held, known))
	}
	quota.Of(l).Withdraw(&e.cell, n.extras.log(e.extra), now, window, hits)
}
