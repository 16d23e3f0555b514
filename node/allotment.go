package node

import (
	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
)

// Allotments returns rights from the agreed epochs. All results are parts of
// total, in its unit. rule is its shared name, x the start of the window in
// Unix milliseconds, and carry how far the algorithm's history reaches back
// from x, in milliseconds. With regional, total is that of the region alone.
// Callers hold the lock of a shard, so implementations must not wait for one.
type Allotments interface {
	// Version changes whenever a result of Allotment may have changed.
	Version() uint64
	// Allotment returns the allotment of this daemon, and the reason for it.
	Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason)
	// Former returns the allotment of this daemon where it counts the use by
	// its former runs as its own, see epoch.FormerPart. It is for windows
	// alone.
	Former(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason)
	// PartOf and RegionPart return the estimated allotment of another daemon of
	// the region, by its name, or of a whole region.
	PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64
	RegionPart(region string, rule, total uint64, x, carry int64) uint64
	// RegionMost returns the most that a region may hold.
	RegionMost(region string, rule, total uint64, x, carry int64) uint64
	// RegionAllotment returns the allotment of this daemon's region and the
	// reason for it, for a rule with an owner in each region.
	RegionAllotment(rule, total uint64, x, carry int64) (uint64, epoch.Reason)
}

// Ablation disables gates or transfers, for comparison.
type Ablation struct{ NoEstimate, NoRights, NoTransfers bool }

// Gate is the set of gates that denied a hit.
type Gate uint8

// The gates. One or both denied a hit that is Over.
const (
	NoGate Gate = iota
	EstimateGate
	RightsGate
	BothGates
	// OwnerGate: the owner of the key has no rights left to lease.
	OwnerGate
	// FailureGate: no owner is reachable, and on_failure denies.
	FailureGate

	gates = iota
)

// String returns the name of the gate in metrics.
func (g Gate) String() string {
	return enum.Name(g, "", "estimate", "rights", "both", "owner", "failure")
}

// rightsGate holds the allotments of this daemon.
type rightsGate struct {
	source Allotments // nil without rights
	cached []cached   // one per rule
	closed bool       // HandOn was called: no more rights are used
	former *former    // that of keys
}

// cached is the latest allotment of a rule's window.
type cached struct {
	limit     *rules.Limit
	window    int64
	version   uint64
	allotment quota.Allotment
	why       epoch.Reason
}

// allotment returns the allotment of this daemon in the window of now, without
// transfers.
func (g *rightsGate) allotment(in *ruleset, r *rules.Rule, now int64) quota.Allotment {
	a, _ := g.explained(in, r, now)
	return a
}

// explained is allotment with the reason.
func (g *rightsGate) explained(in *ruleset, r *rules.Rule, now int64) (quota.Allotment, epoch.Reason) {
	if g.closed {
		return quota.Allotment{}, epoch.ReasonStopped
	}
	f := quota.Of(r.Limit)
	x, carry := f.RightsWindow(now)
	i, version := in.index(r), g.source.Version()
	if i >= 0 {
		if c := &g.cached[i]; c.limit == r.Limit && c.window == x && c.version == version {
			return c.allotment, c.why
		}
	}
	a := f.AllRights()
	var why epoch.Reason
	a.Amount, why = g.part(r, a.Amount, x, carry)
	if a.Rate > 0 {
		a.Rate, _ = g.part(r, a.Rate, x, carry)
	}
	if i >= 0 {
		g.cached[i] = cached{r.Limit, x, version, a, why}
	}
	return a, why
}

// part returns the part of a rule's total that this daemon holds in the
// window that starts at x, and the reason for it.
func (g *rightsGate) part(r *rules.Rule, total uint64, x, carry int64) (uint64, epoch.Reason) {
	regional := r.Limit.Scope == rules.Region
	if g.former.covers(r, x, carry) {
		return g.source.Former(r.Shared(), total, x, carry, regional)
	}
	return g.source.Allotment(r.Shared(), total, x, carry, regional)
}

// bounded reports whether the rights gate applies to a hit. It applies to
// limits of rules, not to those that come with a request.
func (n *Node) bounded(h *Hit) bool {
	return n.cfg.Allotments != nil && n.replica != nil && !n.cfg.Ablation.NoRights &&
		h.Rule != nil && h.Limit == h.Rule.Limit && h.Limit.HasRights() && !n.homed(h)
}

// accountFrom is the fraction 1/accountFrom of an allotment from which on a key
// has an account, so that its rates are known before its rights run short.
const accountFrom = 8

// allow reports whether the rights of this daemon cover a hit. used is the
// known use of the key by all daemons. It is at least the use of this daemon,
// except for buckets, whose meters drain at their own rates. So a key that is
// far from its limit and without transfers needs no account, nor one of former
// runs.
func (n *Node) allow(h *Hit, st *Status, used uint64, now int64) bool {
	if n.gate.closed {
		st.probed.rights = 0
		return false
	}
	base := n.gate.allotment(&n.rules, h.Rule, now)
	need := sat.Add(sat.Add(st.probed.ahead, h.N), used)
	if !quota.Of(h.Limit).Drains() && need <= base.Amount/accountFrom && n.keys.accountAt(h, st.probed.ref) == nil {
		// Others may not have sent the hits of former runs yet.
		if _, ok := n.keys.former.account(h.Key); !ok {
			st.probed.rights = base.Amount - used
			return true
		}
	}
	r := n.accountOf(h, st.probed.ref, now)
	if r == nil {
		st.probed.rights = n.keys.leftShared(h, st.probed.ref, base, used, now)
		return sat.Add(st.probed.ahead, h.N) <= st.probed.rights
	}
	st.probed.account, st.probed.rights = r, r.Left(h.Limit, base, now)
	return sat.Add(st.probed.ahead, h.N) <= st.probed.rights
}

// leftShared returns the rights left to a key that shares its counter with
// other keys: all its use counts as use by this daemon. A bucket's counter has
// an account nevertheless, since its meter drains at the rate of the whole
// bucket.
func (s *keys) leftShared(h *Hit, at ref, base quota.Allotment, used uint64, now int64) uint64 {
	if !quota.Of(h.Limit).Drains() {
		if _, ok := s.former.account(h.Key); ok {
			return 0 // the counter may lack the hits of former runs
		}
		return base.Amount - min(base.Amount, used)
	}
	switch at.where {
	case unborn:
		return quota.Of(h.Limit).Hits(base.Amount)
	case heir:
		at = ref{where: inOverflow, entry: at.entry}
	}
	if r := s.accountAt(h, at); r != nil {
		return r.Left(h.Limit, base, now)
	}
	return 0 // the use is not known
}
