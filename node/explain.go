package node

import (
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/sticky/lease"
)

// Explained is a node's view of one key, for the operator.
type Explained struct {
	// Window is the start of the current window, in Unix milliseconds.
	Window int64
	// Cells are the counts of daemons of the region, and those of other
	// regions.
	Cells []gossip.Cell
	// Used is the known usage of Capacity. Elsewhere is the estimated hits that
	// other daemons admitted since their latest messages. All are in hits.
	Used, Elsewhere, Capacity uint64
	// Rights is nil for a limit without rights here.
	Rights *ExplainedRights
	// Ledger is the lease of the key, Reserve that of its regional reserve; nil
	// without one.
	Ledger, Reserve *lease.Explanation
}

// ExplainedRights is a rights account, in hits.
type ExplainedRights struct {
	Window                                 int64
	Allotment, Received, Given, Used, Left uint64
	Why                                    epoch.Reason
}

// Explain returns the view of a hit's key. It charges nothing, changes no
// answer, and is not for the decision path.
func (n *Node) Explain(at Instant, h *Hit) Explained {
	now := n.millis(at)
	x := Explained{Capacity: quota.Of(h.Limit).Capacity()}
	x.Window, _ = quota.Of(h.Limit).RightsWindow(now)
	where := ref{where: nowhere}
	if e := n.keys.live.Find(h.Key); e != nil {
		where = ref{where: inLive, entry: e}
	}
	cell, log := n.keys.cell(where)
	x.Used = quota.Of(h.Limit).Used(cell, log, now)
	if n.replica == nil {
		return x
	}
	x.Cells = n.replica.engine.CellsOf(h.Key)
	if where.exists() {
		gossip.Observe(n.replica.engine, func() {
			hits, left := n.elsewhere(h, cell, where)
			x.Elsewhere = hits + left
		})
	}
	if n.bounded(h) {
		x.Rights = explainRights(n, h, where, x.Used, now)
	}
	if n.homed(h) {
		x.Ledger = n.leases.Explain(n.leaseNow(), h.Key, h.Rule, false)
		x.Reserve = n.leases.Explain(n.leaseNow(), h.Key, h.Rule, true)
	}
	return x
}

func explainRights(n *Node, h *Hit, where ref, used uint64, now int64) *ExplainedRights {
	l := h.Limit
	base, why := n.gate.explained(&n.rules, h.Rule, now)
	x, _ := quota.Of(l).RightsWindow(now)
	out := &ExplainedRights{Window: x, Allotment: quota.Of(l).Hits(base.Amount), Why: why}
	moved := n.replica.engine.Rights(h.Key, x)
	out.Received, out.Given = moved.Received, moved.Given
	if r := n.keys.accountAt(h, where); r != nil {
		seen := r.Account // whoever looks moves no account to another time
		out.Left = seen.Left(l, base, now)
	} else {
		out.Left = n.keys.leftShared(h, where, base, used, now)
	}
	have := sat.Add(out.Allotment, out.Received)
	out.Used = have - min(have, sat.Add(out.Left, out.Given))
	return out
}
