package rules

// Weight sets the share of a region in the rights of a limit.
type Weight struct {
	Region string
	Share  PPM
}

// Whole is the sum of the weights of a limit.
const Whole = 100 * Percent

// HasRights reports whether a rights gate bounds the hits that the world admits
// under the limit: if it is eventual with a budget, or partitioned. The owner
// counts a strict limit. A limit of one daemon, and one without a limit, need
// no rights.
func (l *Limit) HasRights() bool {
	switch {
	case l.Unlimited, l.Scope == NodeLocal:
		return false
	case l.Consistency == Eventual:
		return l.HasBudget
	default:
		return l.Consistency == Partition
	}
}

// Total returns the sum of all rights of one window: the limit with its budget,
// rounded down. Without a budget it is the limit.
func (l *Limit) Total() uint64 { return l.withBudget(l.Requests) }

// TotalBurst is Total for the burst of a bucket; 0 for other algorithms.
func (l *Limit) TotalBurst() uint64 { return l.withBudget(l.Burst) }

// withBudget cannot overflow: both factors of the product are below 2^32.
func (l *Limit) withBudget(n uint32) uint64 {
	if !l.HasBudget || l.Consistency != Eventual {
		return uint64(n)
	}
	return uint64(n) + uint64(n)*uint64(l.Budget)/uint64(Whole)
}
