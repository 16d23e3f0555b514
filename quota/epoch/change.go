package epoch

import (
	"slices"

	"github.com/georld/rld/internal/sat"
)

// With returns the content of an epoch in which a participant has an amount,
// 0 to Whole, of the total and of each rule, and the others share the rest in
// proportion to their amounts; a new one becomes a member. The caller sets the
// ID, the predecessor and the retirements.
func (e Epoch) With(id, amount uint64) Epoch {
	next := e.Without(id)
	next.scale(Whole - amount)
	k, _ := next.rank(id)
	next.Members = slices.Insert(next.Members, k, Member{ID: id, Amount: amount})
	for i, r := range next.Rules {
		next.Rules[i].Shares = slices.Insert(r.Shares, k, uint32(amount))
	}
	return next
}

// Without returns the content of an epoch without a participant: the others
// share the whole of the total and of each rule in proportion to their amounts.
// The caller sets the ID, the predecessor and the retirements.
func (e Epoch) Without(id uint64) Epoch {
	next := Epoch{Horizon: e.Horizon, Members: slices.Clone(e.Members), Rules: slices.Clone(e.Rules)}
	if k, ok := next.rank(id); ok {
		next.Members = slices.Delete(next.Members, k, k+1)
		for i, r := range next.Rules {
			next.Rules[i].Shares = slices.Delete(slices.Clone(r.Shares), k, k+1)
		}
	}
	next.scale(Whole)
	return next
}

// Shared returns a genesis of weights, at most 2^40 each, as amounts that sum
// to Whole; all 0 are equal ones.
func Shared(weights []Member) (Epoch, error) {
	e, err := Genesis(0, weights)
	if err == nil {
		e.scale(Whole)
	}
	return e, err
}

// scale scales the amounts and the shares of all rules to a total. It replaces
// the slices of shares.
func (e *Epoch) scale(total uint64) {
	amounts := make([]uint64, len(e.Members))
	for i, m := range e.Members {
		amounts[i] = m.Amount
	}
	for i, amount := range scaled(amounts, total) {
		e.Members[i].Amount = amount
	}
	for i, r := range e.Rules {
		e.Rules[i].Shares = scaled(r.Shares, total)
	}
}

// scaled returns amounts in proportion that sum to total, or equal ones if all
// are 0. The first that is not 0 also gets the rest of the rounding. Amounts
// are at most 2^40.
func scaled[T uint32 | uint64](amounts []T, total uint64) []T {
	sum, out, left := uint64(0), make([]T, len(amounts)), total
	for _, a := range amounts {
		sum += uint64(a)
	}
	for i, a := range amounts {
		part := total / uint64(len(amounts))
		if sum > 0 {
			part = sat.MulDiv(total, uint64(a), sum)
		}
		out[i] = T(part)
		left -= part
	}
	for i := range out {
		if sum == 0 || amounts[i] > 0 {
			out[i] += T(left)
			break
		}
	}
	return out
}
