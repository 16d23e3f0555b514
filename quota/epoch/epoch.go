package epoch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

const (
	// MaxMembers bounds the participants of one epoch.
	MaxMembers = 256
	// MaxHorizon is the longest horizon of an epoch, in milliseconds: a day.
	MaxHorizon = 24 * 60 * 60 * 1000
)

// never is the label that does not come; always is before every label.
const (
	never  = math.MaxInt64
	always = math.MinInt64
)

// Member is one participant of an epoch and what it holds of every label.
type Member struct {
	ID     uint64
	Amount uint64
}

// Retirement is an operator's word that a participant is dead: it admits
// nothing under a label that starts at From (Unix milliseconds) or later.
// Nothing checks it. If the participant lives and has not heard of the epoch,
// it goes on spending its old share beside those who were given it.
type Retirement struct {
	ID   uint64
	From int64
}

// Epoch says how much of every label each participant holds. Epochs are
// immutable: one ID has one content, for ever. Slices handed to or got from
// this package must not be modified.
type Epoch struct {
	ID ID
	// Pred is the epoch the proposer saw settled. It is below ID; the genesis,
	// which is below all, names itself.
	Pred ID
	// Horizon is for how long a participant is granted the use of base rights,
	// in milliseconds; 0 is for as long as it likes. It is part of the epoch
	// so that the one who uses and those who take back cannot disagree on it.
	// In an epoch of one or two members it has no effect.
	Horizon int64
	// Members is sorted by ID, each once; who is not in it holds 0.
	Members []Member
	// Retired is sorted by ID, each once, none of them a member.
	Retired []Retirement
	// Rules are the rules that are shared otherwise than Members says, sorted
	// by rule, each once. In an epoch with rows all amounts are parts per
	// million of a rule's total.
	Rules []RuleShares
}

// Genesis returns the first epoch, which everybody derives from the same
// configuration: its ID is zero, it is settled for every label, and nobody
// acknowledges it. Members may come in any order. Two participants that derive
// different ones void every bound of this package.
func Genesis(horizon int64, members []Member) (Epoch, error) {
	e := Epoch{Horizon: horizon, Members: slices.Clone(members)}
	slices.SortFunc(e.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return e, e.Validate()
}

// Validate returns what is wrong with the epoch on its own, or nil.
func (e Epoch) Validate() error {
	if err := e.validate(); err != nil {
		return fmt.Errorf("epoch %s: %w", e.ID, err)
	}
	return nil
}

func (e Epoch) validate() error {
	if e.ID != (ID{}) && !e.Pred.Before(e.ID) {
		return fmt.Errorf("predecessor %s: want one below", e.Pred)
	}
	if e.ID == (ID{}) && (e.Pred != ID{} || len(e.Retired) != 0) {
		return errors.New("genesis with a predecessor or a retirement: want neither")
	}
	if e.Horizon < 0 || e.Horizon > MaxHorizon {
		return fmt.Errorf("horizon %d ms: want 0 to %d", e.Horizon, MaxHorizon)
	}
	if n := len(e.Members); n == 0 || n > MaxMembers {
		return fmt.Errorf("%d members: want 1 to %d", n, MaxMembers)
	}
	if len(e.Retired) > MaxMembers {
		return fmt.Errorf("%d retired: want at most %d", len(e.Retired), MaxMembers)
	}
	sum, carry := uint64(0), uint64(0)
	for i, m := range e.Members {
		if i > 0 && e.Members[i-1].ID >= m.ID {
			return fmt.Errorf("members %d, %d: want them ascending, each once", e.Members[i-1].ID, m.ID)
		}
		if sum, carry = bits.Add64(sum, m.Amount, 0); carry != 0 {
			return errors.New("amounts sum to 2^64 or more: want less")
		}
	}
	for i, r := range e.Retired {
		if i > 0 && e.Retired[i-1].ID >= r.ID {
			return fmt.Errorf("retired %d, %d: want them ascending, each once", e.Retired[i-1].ID, r.ID)
		}
		if e.Has(r.ID) {
			return fmt.Errorf("%d is retired and a member: want one of the two", r.ID)
		}
	}
	return e.validateRows(sum)
}

// Has reports whether the epoch names the participant.
func (e Epoch) Has(id uint64) bool {
	_, ok := e.rank(id)
	return ok
}

// Amount returns what the participant holds under this epoch alone; 0 when it
// is not named.
func (e Epoch) Amount(id uint64) uint64 {
	i, ok := e.rank(id)
	if !ok {
		return 0
	}
	return e.Members[i].Amount
}

// Total returns the sum of all amounts.
func (e Epoch) Total() uint64 {
	sum := uint64(0)
	for _, m := range e.Members {
		sum += m.Amount
	}
	return sum
}

// Split returns the part of amount that falls to the participant when the
// members share it by their amounts, which then count as weights. It is
// monotone in amount, and the parts sum to at most amount. With equal weights
// they sum to exactly amount: the member of rank k of n gets
// floor((amount + n-1-k) / n). Otherwise each is rounded down, which leaves
// less than one unit a member unused: rounding by the largest remainder would
// use them, but is not monotone, and participants that see different amounts
// could then hold more than the greatest of them together.
func (e Epoch) Split(amount, id uint64) uint64 {
	k, ok := e.rank(id)
	if !ok || e.Members[k].Amount == 0 {
		return 0
	}
	w, total, equal := e.Members[k].Amount, uint64(0), true
	for _, m := range e.Members {
		total += m.Amount
		equal = equal && m.Amount == w
	}
	if equal {
		n := uint64(len(e.Members))
		part := amount / n
		if amount%n > uint64(k) {
			part++
		}
		return part
	}
	hi, lo := bits.Mul64(amount, w)
	part, _ := bits.Div64(hi, lo, total) // w <= total, so it fits
	return part
}

func (e Epoch) rank(id uint64) (int, bool) {
	return slices.BinarySearchFunc(e.Members, id, func(m Member, id uint64) int {
		return cmp.Compare(m.ID, id)
	})
}

func (e Epoch) retired(id uint64) (from int64, ok bool) {
	i, ok := slices.BinarySearchFunc(e.Retired, id, func(r Retirement, id uint64) int {
		return cmp.Compare(r.ID, id)
	})
	if !ok {
		return 0, false
	}
	return e.Retired[i].From, true
}

func (e Epoch) equal(o Epoch) bool {
	return e.ID == o.ID && e.Pred == o.Pred && e.Horizon == o.Horizon &&
		slices.Equal(e.Members, o.Members) && slices.Equal(e.Retired, o.Retired) &&
		slices.EqualFunc(e.Rules, o.Rules, RuleShares.equal)
}

// grantsNeeded returns how many members of n, the user of the rights among
// them, must have granted a label before its base may be used; 0 where there
// is no horizon. A third lets the others take back the shares of up to a third
// that died together, and still any two sets of n-grantsNeeded(n)+1 members,
// those that take back, have one in common.
func (e Epoch) grantsNeeded() int {
	n := len(e.Members)
	if e.Horizon == 0 || n <= 2 {
		return 0
	}
	return n/3 + 1
}
