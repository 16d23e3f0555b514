package node

// Policy controls how the verdicts of a call are combined.
type Policy struct {
	// AllQuotas makes every descriptor a quota, also those that nothing limits
	// (upstream's QUOTA_MODE).
	AllQuotas bool
	// Peek charges and tallies nothing.
	Peek bool
}

// Decide combines the verdicts of a call and marks the hits to charge. A call
// is denied if a limit that is no quota is over, or if there are quotas and all
// of them are over. A denied call charges only charge_denied rules. An allowed
// call charges every descriptor that fits, and shadow rules also if they are
// over. A quota in shadow mode is never over, as upstream has it. A blocked key
// denies the call as a limit does that is no quota.
func Decide(out []Status, p Policy) Decision {
	quotas, quotasOver := 0, 0
	limit, quota := -1, -1 // first of each kind that refuses
	shadowed, shadowedQuotas := 0, 0
	for i := range out {
		st := &out[i]
		isQuota := !st.Blocked && (p.AllQuotas || st.Limit != nil && st.Limit.Quota)
		if isQuota {
			quotas++
		}
		if st.Limit == nil || !st.Over {
			continue
		}
		if !st.Refuses() {
			if isQuota {
				shadowedQuotas++
			} else {
				shadowed++
			}
			continue
		}
		switch {
		case !isQuota && limit < 0:
			limit = i
		case isQuota:
			quotasOver++
			if quota < 0 {
				quota = i
			}
		}
	}
	d := Decision{Allowed: true, Refused: -1}
	switch {
	case limit >= 0:
		d = Decision{Refused: limit}
	case quotas > 0 && quotas == quotasOver:
		d = Decision{Refused: quota}
	case shadowed > 0 || quotas > 0 && quotas == quotasOver+shadowedQuotas:
		d.WouldDeny = true
	}
	for i := range out {
		st := &out[i]
		if l := st.Limit; l != nil {
			st.decided.charge = !p.Peek && (l.ChargeDenied || d.Allowed && (!st.Over || l.Shadow))
			st.decided.passed = d.Allowed
			st.decided.peek = p.Peek
		}
	}
	return d
}
