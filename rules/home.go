package rules

import "math"

// Homed reports whether the hits of a limit are decided by rights that a home
// grants: those of a strict limit, and those of a limit with rights that are
// not spread over all daemons. A limit that nobody placed, for want of knowing
// the cluster, is not homed unless it is strict.
func (l *Limit) Homed() bool {
	switch {
	case l.Unlimited, l.Scope == NodeLocal:
		return false
	case l.Consistency == Strict:
		return true
	}
	return l.HasRights() && (l.Placed == PerRegion || l.Placed == Owner)
}

// HomeInRegion reports whether each region has a home of its own for a key of
// a homed limit; otherwise the world has one.
func (l *Limit) HomeInRegion() bool { return l.Scope == Region || l.Placed == PerRegion }

// Reserve returns what of the requests and the burst is set aside for each
// region, for when the home cannot be reached: an even part of ReserveShare,
// rounded down. The home's own region has one too, so that a key whose home moves
// to another region finds all floors as they were. It is 0 for a limit whose
// OnFailure is not Share and where there is no other region. regions is how many
// there are.
func (l *Limit) Reserve(regions int) (requests, burst uint32) {
	if l.OnFailure != Share || !l.Homed() || l.HomeInRegion() || regions < 2 {
		return 0, 0
	}
	return l.reserveOf(l.Requests, regions), l.reserveOf(l.Burst, regions)
}

// reserveOf cannot overflow: both factors of the product are below 2^32. A share
// above the whole counts as the whole.
func (l *Limit) reserveOf(n uint32, regions int) uint32 {
	aside := uint64(n) * uint64(min(l.ReserveShare, Whole)) / uint64(Whole)
	return uint32(aside / uint64(regions))
}

// OwnerLimit returns the limit that the home's ledger of a key is held to: with
// its budget, as far as 32 bits reach, and without the floors of the regions.
// What it returns has no budget and no floors to take off again.
func (l *Limit) OwnerLimit(regions int) Limit {
	requests, burst := l.Reserve(regions)
	all := uint64(max(regions, 0))
	// The floors are parts of what they are taken from, so nothing wraps.
	return l.ledger(l.Total()-all*uint64(requests), l.TotalBurst()-all*uint64(burst))
}

// ReserveLimit returns the limit that the ledger of a region's floor is held to;
// see Reserve. Its requests are 0 where there is no floor.
func (l *Limit) ReserveLimit(regions int) Limit {
	requests, burst := l.Reserve(regions)
	return l.ledger(uint64(requests), uint64(burst))
}

// ledger returns the limit with other numbers, as one ledger's alone.
func (l *Limit) ledger(requests, burst uint64) Limit {
	out := *l
	out.Requests = uint32(min(requests, math.MaxUint32))
	out.Burst = uint32(min(burst, math.MaxUint32))
	out.Budget, out.OnFailure, out.ReserveShare = 0, Deny, 0
	return out
}
