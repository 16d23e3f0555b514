package epoch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/georld/rld/internal/sat"
)

const (
	// MaxMembers bounds the participants of one epoch.
	MaxMembers = 256
	// MaxHorizon is the longest horizon of an epoch, in milliseconds: a day.
	MaxHorizon = 24 * 60 * 60 * 1000
)

// never is after every window; always is before every window.
const (
	never  = math.MaxInt64
	always = math.MinInt64
)

// Member is one participant of an epoch and its amount in every window.
type Member struct {
	ID     uint64
	Amount uint64
	// Diskless members forget their promises when they stop, and never start
	// again under their ID. They extend no horizons, where others can: so the
	// shares of all of them can be reclaimed at once.
	Diskless bool
}

// Retirement is the statement that a participant is dead: it admits nothing in
// a window that starts at From (Unix milliseconds) or later. Nothing checks
// this. If the participant is alive and has not received the epoch, it goes on
// using its old share, although the others use it too.
type Retirement struct {
	ID   uint64
	From int64
}

// Epoch holds the amount of each participant in every window. Epochs are
// immutable: one ID has one content, forever. Slices passed to or returned by
// this package must not be modified.
type Epoch struct {
	ID ID
	// Pred is the settled epoch that the proposer knew. It is below ID. The
	// genesis, which is below all others, names itself.
	Pred ID
	// Horizon is how far ahead a participant may use its rights without another
	// extension, in milliseconds; 0 is without limit. It is part of the epoch,
	// so that the user of a share and those that reclaim it agree on it. It has
	// no effect on members with a disk where there are one or two of them.
	Horizon int64
	// Members is sorted by ID, each once. Other participants hold 0.
	Members []Member
	// Retired is sorted by ID, each once, none of them a member.
	Retired []Retirement
	// Rules are the rules with shares other than those of Members, sorted by
	// rule, each once. In an epoch with such rules, all amounts are parts per
	// million of a rule's total.
	Rules []RuleShares
}

// Genesis returns the first epoch, which all participants derive from the same
// configuration. Its ID is zero, and it is settled for every window without
// acknowledgements. Members may come in any order. No bound of this package
// holds if two participants derive different ones.
func Genesis(horizon int64, members []Member) (Epoch, error) {
	e := Epoch{Horizon: horizon, Members: slices.Clone(members)}
	slices.SortFunc(e.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return e, e.Validate()
}

// Validate returns an error if the epoch is malformed.
func (e Epoch) Validate() error {
	if err := e.validate(); err != nil {
		return fmt.Errorf("epoch %s: %w", e.ID, err)
	}
	return nil
}

func (e Epoch) validate() error {
	switch n := len(e.Members); {
	case e.ID != (ID{}) && !e.Pred.Before(e.ID):
		return fmt.Errorf("predecessor %s: want one below", e.Pred)
	case e.ID == (ID{}) && (e.Pred != ID{} || len(e.Retired) != 0):
		return errors.New("genesis with a predecessor or a retirement: want neither")
	case e.Horizon < 0 || e.Horizon > MaxHorizon:
		return fmt.Errorf("horizon %d ms: want 0 to %d", e.Horizon, MaxHorizon)
	case n == 0 || n > MaxMembers:
		return fmt.Errorf("%d members: want 1 to %d", n, MaxMembers)
	case len(e.Retired) > MaxMembers:
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
	return e.validateRules(sum)
}

// Has reports whether the participant is a member.
func (e Epoch) Has(id uint64) bool {
	_, ok := e.rank(id)
	return ok
}

// Total returns the sum of all amounts.
func (e Epoch) Total() uint64 {
	sum := uint64(0)
	for _, m := range e.Members {
		sum += m.Amount
	}
	return sum
}

// Split returns the participant's part of amount when the members share it with
// their amounts as weights. It is monotone in amount, and the parts sum to at
// most amount. With equal weights they sum to exactly amount: the member of
// rank k of n gets floor((amount + n-1-k) / n). Otherwise each part is rounded
// down, which leaves less than one unit per member unused. Rounding by the
// largest remainder would use these units, but it is not monotone: participants
// with different amounts could then hold more together than the greatest
// amount.
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
	return sat.MulDiv(amount, w, total)
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

// extends reports whether a member of rank k extends the horizons of others:
// those with a disk do, and where none has one, all.
func (e Epoch) extends(k int) bool {
	return !e.Members[k].Diskless || !slices.ContainsFunc(e.Members, func(m Member) bool { return !m.Diskless })
}

// extenders returns how many members extend the horizons of others.
func (e Epoch) extenders() int {
	n := 0
	for i := range e.Members {
		if !e.Members[i].Diskless {
			n++
		}
	}
	return cmp.Or(n, len(e.Members))
}

// extensionsNeeded returns how many of the n extenders, with the user itself if
// it is one of them, must have extended the user's horizon to a window before
// it may use its rights there; 0 without a horizon. A third allows the others
// to reclaim the shares of up to a third of them that die together. Any two
// sets of n-extensionsNeeded(n)+1 extenders, enough to reclaim a share, still
// have one in common. One or two extenders have no horizon themselves.
func (e Epoch) extensionsNeeded(id uint64) int {
	n := e.extenders()
	if k, ok := e.rank(id); e.Horizon == 0 || n <= 2 && (!ok || e.extends(k)) {
		return 0
	}
	return n/3 + 1
}
