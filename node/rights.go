package node

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
)

// Allotments says what this daemon holds of a label, from the epochs that it and the
// others have agreed on. All amounts are parts of total, in its unit. rule is
// SharedRule, x the start of the label and carry how far history reaches back
// from it, in Unix milliseconds and milliseconds; regional says that total is
// that of the region alone. It is asked under the locks of shards and must not
// wait for one of them.
type Allotments interface {
	// Version changes whenever an answer of Allotment may have.
	Version() uint64
	// Allotment returns what this daemon holds, and why.
	Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason)
	// PartOf and RegionPart say what another daemon of the region, by its name,
	// or a whole region is believed to hold.
	PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64
	RegionPart(region string, rule, total uint64, x, carry int64) uint64
	// RegionAllotment returns what this daemon's region holds, all of it, and why: for
	// a rule whose rights sit at homes in each region.
	RegionAllotment(rule, total uint64, x, carry int64) (uint64, epoch.Reason)
}

// Ablation leaves gates out, for comparison.
type Ablation struct{ NoEstimate, NoRights, NoTransfers bool }

// Gate says which gates refused a hit.
type Gate uint8

// The gates. A hit that is Over was refused by one or both.
const (
	NoGate Gate = iota
	EstimateGate
	RightsGate
	BothGates
	// OwnerGate: the home of the key has no more rights to give.
	OwnerGate
	// FailureGate: no home could be asked, and on_failure refuses.
	FailureGate

	gates = iota
)

// String returns the name that metrics carry.
func (g Gate) String() string {
	names := [...]string{"", "estimate", "rights", "both", "owner", "failure"}
	if int(g) >= len(names) {
		return "unknown"
	}
	return names[g]
}

// held is the base of one rule's label, as it was found last.
type held struct {
	limit   *rules.Limit
	window  int64
	version uint64
	base    quota.Allotment
}

// bounded reports whether the rights gate applies to a hit: to the limits of
// rules, not to those that come with a request.
func (n *Node) bounded(h *Hit) bool {
	return n.cfg.Allotments != nil && n.replica != nil && !n.cfg.Ablation.NoRights &&
		h.Rule != nil && h.Limit == h.Rule.Limit && h.Limit.HasRights() && !n.homed(h)
}

// base returns what this daemon holds of the label of now before any gift.
func (n *Node) base(r *rules.Rule, now int64) quota.Allotment {
	l := r.Limit
	x, carry := quota.Of(l).RightsWindow(now)
	i := n.ruleIndex(r)
	version := n.cfg.Allotments.Version()
	if i >= 0 {
		if c := &n.held[i]; c.limit == l && c.window == x && c.version == version {
			return c.base
		}
	}
	name, regional := SharedRule(r), l.Scope == rules.Region
	var b quota.Allotment
	if quota.Of(l).Drains() {
		b.Amount, _ = n.cfg.Allotments.Allotment(name, quota.Tokens(l.TotalBurst()), x, carry, regional)
		b.Rate, _ = n.cfg.Allotments.Allotment(name, quota.Tokens(l.Total()), x, carry, regional)
	} else {
		b.Amount, _ = n.cfg.Allotments.Allotment(name, l.Total(), x, carry, regional)
	}
	if i >= 0 {
		n.held[i] = held{l, x, version, b}
	}
	return b
}

// rowFrom is the part of a base, one in so many, from which on a key has a row: so
// that it is known how fast its rights go before they run short.
const rowFrom = 8

// allow finds out whether the rights of this daemon cover a hit. used is what is
// known of the key's use by all; it is at least what this daemon used, but for
// buckets, whose meters drain at rates of their own. So a key that is far from
// its limit, and traded nothing, needs no row.
func (n *Node) allow(h *Hit, st *Status, used uint64, now int64) bool {
	base := n.base(h.Rule, now)
	need := sat.Add(sat.Add(st.ahead, h.N), used)
	if !quota.Of(h.Limit).Drains() && need <= base.Amount/rowFrom && n.rowAt(h, st.ref) == nil {
		st.rights = base.Amount - used
		return true
	}
	r := n.rowOf(h, st.ref, now)
	if r == nil {
		st.rights = n.leftShared(h, st.ref, base, used, now)
		return sat.Add(st.ahead, h.N) <= st.rights
	}
	st.row, st.rights = r, r.Left(h.Limit, base, now)
	return sat.Add(st.ahead, h.N) <= st.rights
}

// leftShared returns what is left of the rights to a key that shares its counter
// with others: all of it counts as used by this daemon. The meter of a bucket's
// counter drains at the rate of the whole bucket, so that one has a row, too.
func (n *Node) leftShared(h *Hit, at ref, base quota.Allotment, used uint64, now int64) uint64 {
	if !quota.Of(h.Limit).Drains() {
		return base.Amount - min(base.Amount, used)
	}
	switch at.where {
	case unborn:
		return base.Amount / quota.Tokens(1)
	case heir:
		at = ref{where: inOverflow, index: at.from}
	}
	if r := n.rowAt(h, at); r != nil {
		return r.Left(h.Limit, base, now)
	}
	return 0 // what was used is not known
}
