package node

import (
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/lease"
)

// Receipt is the charge of one descriptor of an admitted call, for a refund.
// One without hits refunds nothing. A receipt is valid only at the node that
// issued it, which the driver ensures, and once.
type Receipt struct {
	// Number differs between the receipts of a node.
	Number uint64
	Key    crdt.Key
	// ID is that of the rule, 0 for an override. Rule is its shared name.
	ID   rules.ID
	Rule uint64
	// Window is the start of the window that the hits were counted in, Length
	// its length, and Until the time from which they cannot be refunded, in
	// Unix milliseconds.
	Window, Length, Until int64
	Hits                  uint64
	// Alone is set if the hits were not replicated, and Reserve if they used
	// the regional reserve of a strict key.
	Alone, Reserve bool
}

// Refunded is the outcome of a refund.
type Refunded struct {
	// Hits is the number of refunded hits.
	Hits uint64
	// Expired is set if the hits count no longer: their window is over, it
	// ended without a debt to carry, or their rule is gone or counts on another
	// grid. None were refunded.
	Expired bool
	// Already is set if the receipt was used before, and Full if the node has
	// no room to remember that it is used. None were refunded.
	Already, Full bool
}

// Receipts writes the charges of an admitted call into to, which has a place
// for each descriptor and belongs to the caller. It must follow Charge for the
// same hits and Instant. Twins have none: a refund under one secret leaves the
// hits of the other one used. Hits on an overflow counter, and hits that could
// not be replicated, have no receipt. Their status is degraded, by keys_full or
// cells_full, or was. Nor have hits on a strict key that used no rights of it.
func (n *Node) Receipts(at Instant, h []Hit, out []Status, to []Receipt) {
	now := n.millis(at)
	for i := range to { // twins have none
		st := &out[i]
		if h[i].Limit == nil || !n.keys.owns(h[i].Key) || h[i].N == 0 || st.probed.homed && !st.probed.lease.Granted() ||
			!st.decided.charge || !st.decided.passed || st.probed.ref.where != inLive {
			continue
		}
		e := st.probed.ref.entry
		if e.Inherited() {
			continue
		}
		f := quota.Of(h[i].Limit)
		n.issued++
		r := Receipt{Number: n.issued, Key: h[i].Key, Hits: h[i].N, Alone: n.replica == nil || !replicated(h[i].Limit)}
		r.Reserve = st.probed.homed && st.probed.lease.Reserve()
		r.Window, r.Length, _ = f.Shared(&e.Cell, now)
		r.Until = f.RefundEnd(r.Window)
		if h[i].Rule != nil && h[i].Limit == h[i].Rule.Limit {
			r.ID, r.Rule = h[i].Rule.ID, h[i].Rule.Shared()
		}
		to[i] = r
	}
}

// Refund refunds up to hits of a receipt of this node, once, in the window they
// were counted in, and never more than were counted there. It subtracts them
// from the key's cell, replicates that, and returns them to the rights of this
// daemon.
//
// Only rights of windows are returned. Rights of a bucket or a log have no
// windows, so usage in its account drains or leaves the window as if nothing
// had been refunded. An account that is made later starts from the admitted
// hits less the refunded ones.
func (n *Node) Refund(at Instant, r *Receipt, hits uint64) Refunded {
	now := n.millis(at)
	// One that expired is used, too: a reload may let its hits count again.
	if failed := n.used.enter(r, now); failed != (Refunded{}) {
		return failed
	}
	l, rule := n.rules.limitOfReceipt(r)
	if l == nil || !n.keys.owns(r.Key) || !quota.Of(l).Refundable(now, r.Window) {
		return Refunded{Expired: true}
	}
	hits = min(hits, r.Hits)
	h := Hit{Key: r.Key, Limit: l, Rule: rule}
	hits = refund(n, &h, r.Window, hits, now, refundOrigin{r.Alone, r.Reserve})
	return Refunded{Hits: hits, Expired: hits == 0}
}

// RefundHits refunds up to hits of those that a node itself counted for the
// key of h, without a receipt, and returns how many. It refunds hits of the
// window of now, of a sliding window also of the window before, and of a log
// the oldest first. So it refunds no more than the node has charged and not
// refunded, and the hits admitted less those refunded stay within every bound.
//
// A strict key has none: only a receipt names the lease that its hits used. Nor
// has a key on an overflow counter, which it shares with other keys.
func RefundHits(n *Node, at Instant, h *Hit, hits uint64) uint64 {
	now := n.millis(at)
	if h.Limit == nil || hits == 0 || !n.keys.owns(h.Key) || n.homed(h) {
		return 0
	}
	e := n.keys.live.Find(h.Key)
	if e == nil || e.Inherited() {
		return 0
	}
	origin := refundOrigin{alone: n.replica == nil || !replicated(h.Limit)}
	left := hits
	for _, window := range ownWindows(n, e, h.Limit, now, origin.alone) {
		if left > 0 && quota.Of(h.Limit).Refundable(now, window) {
			left -= refund(n, h, window, left, now, origin)
		}
	}
	return hits - left
}

// ownWindows returns the windows of an entry in which RefundHits looks for hits
// of this node, in the order in which it does.
func ownWindows(n *Node, e *keytable.Entry, l *rules.Limit, now int64, alone bool) []int64 {
	f := quota.Of(l)
	window, _, _ := f.Shared(&e.Cell, now)
	switch {
	case f.Weighted():
		return []int64{window, window - f.Window()}
	case !f.Stamped():
		return []int64{window}
	case alone:
		return []int64{now - f.Window() + 1} // with those of all later stamps
	}
	var out []int64
	n.replica.engine.OwnWindows(e.Key, func(window, _ int64, net uint64) {
		if net > 0 {
			out = append(out, window)
		}
	})
	slices.Sort(out)
	return out
}

// refundOrigin is how hits were charged that are refunded.
type refundOrigin struct{ alone, reserve bool } // of a Receipt

// refund refunds up to hits of a hit's key in a window, and returns how many.
func refund(n *Node, h *Hit, window int64, hits uint64, now int64, from refundOrigin) uint64 {
	e := n.keys.live.Find(h.Key)
	var eng *gossip.Engine
	if n.replica != nil {
		eng = n.replica.engine
	}
	if !from.alone && eng != nil {
		hits = eng.Refund(n.at.Mono, h.Key, window, hits)
	} else if e == nil { // the charge has drained, or the key was dropped
		hits = 0
	} else if f := quota.Of(h.Limit); f.Windowed() {
		hits = min(hits, f.Held(&e.Cell, window))
	}
	if e == nil || hits == 0 {
		return hits
	}
	n.keys.withdraw(eng, e, h.Limit, window, hits, now)
	if n.homed(h) {
		n.leases.Refund(n.leaseNow(), &lease.Hit{Key: h.Key, Rule: h.Rule}, from.reserve, window, hits)
	} else if a := n.keys.sides.account(e.Extra); a != nil && n.bounded(h) {
		a.Left(h.Limit, n.gate.allotment(&n.rules, h.Rule, now), now) // moves it to the window of now
		a.Return(h.Limit, window, hits)
	}
	return hits
}

// withdraw subtracts hits from an entry that were refunded here or elsewhere.
// The count of a window never falls below the replicated hits, in whatever
// order refunds arrive: the rights gate relies on a count far below the limit.
// eng is nil if the node replicates nothing.
func (s *keys) withdraw(eng *gossip.Engine, e *keytable.Entry, l *rules.Limit, window int64, hits uint64, now int64) {
	f := quota.Of(l)
	if f.Windowed() && eng != nil && replicated(l) {
		held, known := f.Held(&e.Cell, window), eng.Total(e.Key, window)
		hits = min(hits, held-min(held, known))
	}
	f.Withdraw(&e.Cell, s.sides.log(e.Extra), now, window, hits)
}
