package node

import (
	"slices"
	"time"

	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// Explained is what a node knows of one key, for people.
type Explained struct {
	// Window is the start of the label that runs, in Unix milliseconds.
	Window int64
	// Cells are the counts of daemons of the region, and of other regions.
	Cells []gossip.Cell
	// Used is what is in use of Capacity as far as is known here, Elsewhere what
	// others are estimated to have been granted since they were heard.
	Used, Elsewhere, Capacity uint64
	// Allotments is nil for a limit that holds none here.
	Rights *ExplainedRights
	// Ledger is of the key, Reserve of what its region falls back to; nil where
	// there is none.
	Ledger, Reserve *ExplainedLease
}

// ExplainedRights is a rights account, in hits.
type ExplainedRights struct {
	Window                                 int64
	Allotment, Received, Given, Used, Left uint64
	Why                                    epoch.Reason
}

// ExplainedLease is what is known of the rights that a home grants.
type ExplainedLease struct {
	Key        crdt.Key
	Watermarks crdt.Key // what replicas call it
	Owner      route.Owner
	Pinned     bool
	Within     time.Duration
	Open       bool // the home may be asked
	// Limit is what the ledger has of a label.
	Limit rules.Limit
	// Credit is what was granted to this daemon, nil for nothing so far.
	Credit *ExplainedCredit
	// Bank is what a home knows, nil where this daemon is not home.
	Bank *ExplainedBank
}

// ExplainedCredit is the rights that were granted to this daemon.
type ExplainedCredit struct {
	Window, Until                 int64
	Granted, Used, Returned, Left uint64
	Asking                        bool
	// From is the home that granted last, Round its ballot's.
	From  crdt.Incarnation
	Round uint64
	// Denied is the least number of hits that is refused unasked for another
	// DeniedFor, 0 for none.
	Denied    uint64
	DeniedFor time.Duration
}

// ExplainedBank is a home's ledger.
type ExplainedBank struct {
	Ballot sticky.Ballot
	// Window is that of Watermark, which is as quota.Watermark has it; Consumed is what of it is.
	Window              int64
	Watermark, Consumed uint64
	// Room is how many hits may be consumed without another raise, Left how many
	// of the limit are.
	Room, Left uint64
	Batches    []Batch
}

// Batch is what a home granted to a holder in the label that runs.
type Batch struct {
	Lessee            crdt.Incarnation
	Granted, Returned uint64
}

// Explain says what is known of a hit's key. It charges nothing, changes no
// answer, and is not for the decision path.
func (n *Node) Explain(at Instant, h *Hit) Explained {
	now := n.millis(at)
	x := Explained{Capacity: quota.Of(h.Limit).Capacity()}
	x.Window, _ = quota.Of(h.Limit).RightsWindow(now)
	where := ref{where: nowhere}
	if i := n.keys.live.find(h.Key); i >= 0 {
		where = ref{where: inLive, index: i}
	}
	cell, log := n.keys.cell(where)
	x.Used = quota.Of(h.Limit).Used(cell, log, now)
	if n.replica == nil {
		return x
	}
	x.Cells = n.replica.engine.CellsOf(h.Key)
	if where.exists() {
		x.Elsewhere = n.elsewhere(h, cell, where)
	}
	if n.bounded(h) {
		x.Rights = n.explainRights(h, where, x.Used, now)
	}
	if n.homed(h) {
		x.Ledger = n.explainLedger(h, false, now)
		x.Reserve = n.explainLedger(h, true, now)
	}
	return x
}

func (n *Node) explainRights(h *Hit, where ref, used uint64, now int64) *ExplainedRights {
	l, base := h.Limit, n.base(h.Rule, now)
	x, carry := quota.Of(l).RightsWindow(now)
	out := &ExplainedRights{Window: x, Allotment: quota.Of(l).Hits(base.Amount)}
	_, out.Why = n.cfg.Allotments.Allotment(SharedRule(h.Rule), l.Total(), x, carry, l.Scope == rules.Region)
	moved := n.replica.engine.Rights(h.Key, x)
	out.Received, out.Given = moved.Received, moved.Given
	out.Left = n.leftShared(h, where, base, used, now)
	if r := n.keys.accountAt(h, where); r != nil {
		out.Left = r.Left(l, base, now)
	}
	have := sat.Add(out.Allotment, out.Received)
	out.Used = have - min(have, sat.Add(out.Left, out.Given))
	return out
}

func (n *Node) explainLedger(h *Hit, reserve bool, now int64) *ExplainedLease {
	l := n.termsOf(h.Rule, reserve, now)
	if l == nil {
		return nil
	}
	out := &ExplainedLease{Key: ledgerKey(h.Key, reserve), Limit: *l}
	var v *route.Routing
	out.Owner, v = n.ownerOf(out.Key, h.Rule.ID, regional(h.Limit, reserve))
	if v != nil {
		out.Pinned = !regional(h.Limit, reserve) && v.Pinned(uint64(h.Rule.ID))
		out.Within, out.Open = n.cfg.Owners.Reach(out.Owner.Incarnation)
	}
	led := n.desk.of[nameOf(out.Key, h.Rule, reserve)]
	if out.Watermarks = out.Key; !reserve && h.Limit.HomeInRegion() {
		out.Watermarks = RegionalWatermarks(out.Key, n.cfg.Region)
	}
	if led == nil {
		return out
	}
	if c := &led.credit; c.heard > 0 {
		out.Credit = n.explainCredit(c, l, now)
	}
	if led.bank != nil && out.Owner.Self {
		out.Bank = explainBank(led.bank, l, now)
	}
	return out
}

func (n *Node) explainCredit(c *credit, l *rules.Limit, now int64) *ExplainedCredit {
	out := &ExplainedCredit{Window: c.window, Until: c.until, Used: c.used, Left: c.left(l, now), Asking: len(c.asks) > 0}
	for _, from := range c.from {
		out.Granted = sat.Add(out.Granted, from.total)
		out.Returned = sat.Add(out.Returned, from.returned)
		out.From, out.Round = from.owner, from.round
	}
	if c.refused > 0 && n.at.Mono < c.retry {
		out.Denied, out.DeniedFor = c.refused, c.retry-n.at.Mono
	}
	return out
}

func explainBank(b *bank, l *rules.Limit, now int64) *ExplainedBank {
	b.roll(l, now)
	m := b.row.Watermark(l, now, now, 0)
	out := &ExplainedBank{
		Ballot: b.keeper.Ballot(), Window: m.Window, Watermark: b.marked(m.Window), Consumed: m.Amount,
		Room: b.room(l, now, now), Left: b.left(l, now, now),
	}
	for i := range b.holders {
		if d := &b.holders[i]; d.total > 0 && d.window >= creditWindow(l, now, now) {
			out.Batches = append(out.Batches, Batch{d.of, d.total, d.returned})
		}
	}
	slices.SortFunc(out.Batches, func(a, b Batch) int {
		if a.Granted != b.Granted {
			return int(min(b.Granted, 1<<40)) - int(min(a.Granted, 1<<40))
		}
		if a.Lessee < b.Lessee {
			return -1
		}
		return 1
	})
	return out
}

// StrictStats returns what the node did about strict keys.
func (n *Node) StrictStats() StrictStats {
	s := n.desk.counts
	s.Ledgers = len(n.desk.all)
	return s
}
