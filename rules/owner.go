package rules

import "math"

// Homed reports whether an owner leases the rights to the keys of a limit: if
// it is strict, or if it has rights that are not spread over all daemons. A
// limit without a placement, because the size of the cluster was unknown, is
// homed only if it is strict.
func (l *Limit) Homed() bool {
	switch {
	case l.Unlimited, l.Scope == NodeLocal:
		return false
	case l.Consistency == Strict:
		return true
	}
	return l.HasRights() && (l.Placed == PerRegion || l.Placed == Owner)
}

// HomeInRegion reports whether a key of a homed limit has an owner in each
// region. Otherwise it has one in the world.
func (l *Limit) HomeInRegion() bool { return l.Scope == Region || l.Placed == PerRegion }

// Reserve returns the part of the requests and of the burst that is set aside
// for each region, for when the owner is unreachable: an even part of
// ReserveShare, rounded down. The owner's own region has one too, so that all
// reserves stay the same when the owner moves to another region. It is 0 if
// OnFailure is not Share or if there is no other region. regions is the number
// of regions.
func (l *Limit) Reserve(regions int) (requests, burst uint32) {
	if l.OnFailure != Share || !l.Homed() || l.HomeInRegion() || regions < 2 {
		return 0, 0
	}
	return l.reserveOf(l.Requests, regions), l.reserveOf(l.Burst, regions)
}

// reserveOf cannot overflow: both factors of the product are below 2^32. A
// share above the whole counts as the whole.
func (l *Limit) reserveOf(n uint32, regions int) uint32 {
	aside := uint64(n) * uint64(min(l.ReserveShare, Whole)) / uint64(Whole)
	return uint32(aside / uint64(regions))
}

// OwnerLimit returns the limit that the owner of a key enforces: with its
// budget, as far as 32 bits reach, and without the regional reserves. The
// result has no budget and no reserves of its own.
func (l *Limit) OwnerLimit(regions int) Limit {
	requests, burst := l.Reserve(regions)
	all := uint64(max(regions, 0))
	// The reserves are parts of the minuends, so nothing wraps around.
	return l.withAmounts(l.Total()-all*uint64(requests), l.TotalBurst()-all*uint64(burst))
}

// ReserveLimit returns the limit of one regional reserve; see Reserve. Its
// requests are 0 without a reserve.
func (l *Limit) ReserveLimit(regions int) Limit {
	requests, burst := l.Reserve(regions)
	return l.withAmounts(uint64(requests), uint64(burst))
}

// withAmounts returns the limit with other numbers, for one owner or reserve.
func (l *Limit) withAmounts(requests, burst uint64) Limit {
	out := *l
	out.Requests = uint32(min(requests, math.MaxUint32))
	out.Burst = uint32(min(burst, math.MaxUint32))
	out.Budget, out.OnFailure, out.ReserveShare = 0, Deny, 0
	return out
}
