package rules

import "bytes"

// counts reports whether a limit counts anything.
func (l *Limit) counts() bool { return l != nil && !l.Unlimited }

// SameShape reports whether two limits differ in their amounts at most:
// requests, burst, budget and shadow mode. All else decides which counters and
// which rights a limit has. Both may be nil.
func SameShape(a, b *Limit) bool {
	if a == nil || b == nil {
		return a == b
	}
	c := *b
	c.Requests, c.Burst, c.Budget, c.Shadow = a.Requests, a.Burst, a.Budget, a.Shadow
	return a.Placed == b.Placed && bytes.Equal(appendLimit(nil, a), appendLimit(nil, &c))
}

// Lower returns the limit of a rule that changes from one limit to another,
// before the change is in force: before with the smaller amounts of both. It is
// before itself where the amounts of the two cannot be compared: they count in
// other windows or by other algorithms, or one of them counts nothing. An
// overage budget is compared where both have one. No argument is modified.
func Lower(before, after *Limit) *Limit {
	if !before.counts() || !after.counts() || before.Algorithm != after.Algorithm || before.Window() != after.Window() {
		return before
	}
	low := *before
	low.Requests = min(before.Requests, after.Requests)
	low.Burst = min(before.Burst, after.Burst)
	if low.HasBudget && after.HasBudget {
		low.Budget = min(before.Budget, after.Budget)
	}
	low.Shadow = before.Shadow && after.Shadow
	return &low
}

// Denied returns a limit with the shape of l that admits nothing.
func (l *Limit) Denied() *Limit {
	none := *l
	none.Requests, none.Burst, none.Shadow = 0, 0, false
	return &none
}

// Blocked returns a limit that denies all hits of a key, in any mode, and
// charges none. It counts where l does, and needs neither rights nor an owner.
func (l *Limit) Blocked() Limit {
	none := *l
	none.Requests, none.Burst, none.Budget, none.HasBudget = 0, 0, 0, false
	none.Shadow, none.Quota, none.ChargeDenied = false, false, false
	none.Consistency, none.Placed, none.OnFailure = Eventual, Auto, Deny
	return none
}

// WithRequests returns the limit with other requests. The burst of a bucket
// goes with them where it is the same number, and where they are 0.
func (l *Limit) WithRequests(n uint32) Limit {
	out := *l
	if out.Requests = n; l.Algorithm.Bucket() && (l.Burst == l.Requests || n == 0) {
		out.Burst = n
	}
	return out
}

// Effect is the effect of a change of one limit. Both fields may be true.
type Effect struct {
	// Lowers: an amount is smaller, or a limit in shadow mode is enforced.
	Lowers bool
	// Raises: all other changes. Most of them admit more calls, and the others
	// move rights.
	Raises bool
}

// EffectOf returns the effect of a change from one limit to another. A nil
// limit is that of a rule that does not exist, or that counts nothing.
func EffectOf(before, after *Limit) Effect {
	if !SameShape(before, after) {
		low := Lower(before, after)
		return Effect{Lowers: before != nil && !sameAmounts(low, before), Raises: true}
	}
	if before == nil {
		return Effect{}
	}
	low := Lower(before, after)
	return Effect{Lowers: !sameAmounts(low, before), Raises: !sameAmounts(low, after)}
}

// sameAmounts compares the amounts of two limits.
func sameAmounts(a, b *Limit) bool {
	return a.Requests == b.Requests && a.Burst == b.Burst && a.Budget == b.Budget && a.Shadow == b.Shadow
}

// Takeover returns the first start of a window of the limit at or after a time,
// in Unix milliseconds. It is the time itself for a limit that counts nothing.
func (l *Limit) Takeover(from int64) int64 {
	if !l.counts() || l.Window() <= 0 {
		return from
	}
	return CeilWindow(from, l.Window())
}

// CeilWindow rounds a time up to a multiple of a window, both in milliseconds.
func CeilWindow(at, window int64) int64 {
	if over := at % window; over > 0 {
		return at + window - over
	}
	return at
}
