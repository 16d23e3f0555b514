package node

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/lease"
)

// newLeases returns the lease table of a node, nil without owners.
func newLeases(cfg *Config, r *replica, s *keys, set *rules.Set, self crdt.Incarnation) *lease.Table {
	if cfg.Owners == nil {
		return nil
	}
	return lease.New(cfg.Strict, lease.Env{
		Self: self, Region: cfg.Region, Shard: cfg.Shard, Shards: cfg.Shards, MaxKeys: cfg.MaxKeys, KeyReserve: cfg.KeyReserve,
		MaxOffset: r.clocks.MaxOffset(),
		Owners:    cfg.Owners, Allotments: cfg.Allotments, Live: r.engine.Live, Holds: s.owns,
	}, set)
}

// homed reports whether an owner's grants decide a hit.
func (n *Node) homed(h *Hit) bool {
	return n.leases != nil && h.Rule != nil && h.Limit == h.Rule.Limit && h.Limit.Homed()
}

// leaseNow returns the clocks of the call under way.
func (n *Node) leaseNow() lease.Now { return lease.Now{Mono: n.at.Mono, Millis: n.now} }

// leaseHit returns a hit as the lease table gets it.
func leaseHit(h *Hit, st *Status) lease.Hit {
	return lease.Hit{
		Key: h.Key, Rule: h.Rule, N: h.N, Ahead: st.probed.ahead, Peek: h.Peek, Ticket: h.Ticket, Failed: h.Failed,
	}
}

// adopt makes the answer of the lease table the verdict on a strict hit.
func (st *Status) adopt(a *lease.Answer) {
	st.Gate, st.probed.account, st.probed.bounded = NoGate, nil, false
	st.Over, st.Wait, st.Owner, st.Within = a.Over(), a.Verdict == lease.Pending, a.Owner, a.Within
	switch a.Verdict {
	case lease.Denied:
		st.Gate = OwnerGate
	case lease.Failed:
		st.Gate = FailureGate
	}
	switch a.Failure {
	case lease.OwnerUnreachable:
		st.Degraded = OwnerUnreachable
	case lease.BreakerOpen:
		st.Degraded = CircuitOpen
	case lease.NoRoom:
		st.Degraded = KeysFull
	default:
		if st.Wait && st.Degraded == KeysFull {
			st.Degraded = NotDegraded // the counter is shared, and the owner is asked
		}
	}
}

// reportStrict completes the status of a strict hit.
func (st *Status) reportStrict(t *lease.Table, h *Hit) {
	x := leaseHit(h, st)
	r := t.Report(&x, &st.probed.lease)
	st.Remaining, st.Reset, st.Retry, st.Never = r.Remaining, duration(r.Reset), 0, false
	if st.Over {
		st.Retry, st.Never = duration(r.Retry), r.Never
	}
	st.probed.room = 1 << 40 // no other daemon decides by the count, so nothing is expedited
	if !st.decided.passed {
		st.Delay = 0
	}
}

// RequestLease requests the rights that the hits of a call wait for: those
// whose status has Wait. It must follow a Probe for the same hits and Instant
// that denied no other hit. The rights are set aside for the ticket, which is
// the caller's number for the call and not 0, until the hits are charged or
// CancelLease is called. The caller probes again with Hit.Ticket when
// LeaseReady returns the ticket, or with one more in Hit.Failed after
// Status.Within.
func (n *Node) RequestLease(at Instant, h []Hit, out []Status, ticket uint64) {
	n.millis(at)
	for i := range h {
		if h[i].Limit == nil || !n.keys.owns(h[i].Key) || !out[i].Wait {
			continue
		}
		x := leaseHit(&h[i], &out[i])
		n.leases.Request(n.leaseNow(), &x, &out[i].probed.lease, ticket)
	}
}

// CancelLease releases the rights that are set aside for a ticket, and its
// requests.
func (n *Node) CancelLease(at Instant, h []Hit, ticket uint64) {
	n.millis(at)
	for i := range h {
		if h[i].Limit == nil || !n.keys.owns(h[i].Key) || !n.homed(&h[i]) {
			continue
		}
		n.leases.Cancel(n.leaseNow(), &lease.Hit{Key: h[i].Key, Rule: h[i].Rule}, ticket)
	}
}

// StepLease handles the lease requests, grants and accepted watermarks of a
// message for keys of this node. The rest is the acceptor's. It returns how
// many items it rejected.
func (n *Node) StepLease(at Instant, m *sticky.Message) (rejected int) {
	if n.leases == nil {
		return len(m.Requests) + len(m.Grants) + len(m.Accepted)
	}
	_ = n.clock.Observe(at, m.Stamp) // the replication reports clocks that are off
	n.at, n.now = Instant{}, 0       // it may have moved
	n.millis(at)
	return n.leases.Step(n.leaseNow(), m)
}

// LeaseReady returns the messages and tickets since the last call. It must be
// called after each RequestLease, CancelLease, StepLease, Charge and Tick. It
// is cheap when there is nothing.
func (n *Node) LeaseReady(at Instant) lease.Ready {
	if !n.HasLeaseReady() {
		return lease.Ready{}
	}
	r, number := n.leases.Ready(), uint64(0)
	if v := n.cfg.Owners.Routing(); v != nil {
		number = v.Number()
	}
	stamp := n.clock.Now(at)
	for i := range r.Messages {
		r.Messages[i].Stamp, r.Messages[i].Number = stamp, number
	}
	return r
}

// HasLeaseReady reports whether LeaseReady would return anything.
func (n *Node) HasLeaseReady() bool { return n.leases != nil && n.leases.Pending() }

// LeaseStats returns the statistics of the lease table.
func (n *Node) LeaseStats() lease.Stats {
	if n.leases == nil {
		return lease.Stats{}
	}
	return n.leases.Stats()
}
