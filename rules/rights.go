package rules

// Weight pins the share of a region in the rights of a limit.
type Weight struct {
	Region string
	Share  PPM
}

// Whole is the share of everything: the weights of a limit sum to it.
const Whole = 100 * Percent

// HasRights reports whether a gate of rights bounds what the world admits
// under the limit: an eventual limit with a budget, or a partitioned one. A
// strict limit is counted at its home, a limit of one daemon and one that
// passes everything need no rights.
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

// Total returns the hits that all rights of one label may sum to: the limit
// and its budget, rounded down. Without a budget it is the limit.
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
