package epoch

import (
	"testing"

	"pgregory.net/rapid"
)

// TestScaledPartsSumToTheTotal: whatever the amounts, only the first that is
// not 0 gets more than its proportion, and together they get the total.
func TestScaledPartsSumToTheTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOfN(rapid.Uint32Range(0, 5), 1, 8).Draw(t, "amounts")
		total := rapid.Uint64Range(0, Whole).Draw(t, "total")
		sum, left := uint64(0), total
		for _, a := range amounts {
			sum += uint64(a)
		}
		first := true
		for i, part := range scaled(amounts, total) {
			if uint64(part) > left {
				t.Fatalf("part %d of %d is %d, and %d are left", i, total, part, left)
			}
			left -= uint64(part)
			if rest := first && (amounts[i] > 0 || sum == 0); rest {
				first = false
			} else if sum > 0 && uint64(part) > total*uint64(amounts[i])/sum {
				t.Fatalf("part %d of %d is %d, for %d of %d", i, total, part, amounts[i], sum)
			}
		}
		if left != 0 {
			t.Fatalf("%d of %d are left", left, total)
		}
	})
}

// TestWithAndWithout: one participant gets an amount of the total and of each
// rule, or leaves, and the others share the rest; the epoch before stays.
func TestWithAndWithout(t *testing.T) {
	old := Epoch{
		ID: at(3), Pred: at(1), Members: amounts(1, 600_000, 3, 400_000), Retired: []Retirement{{9, 5}},
		Rules: []RuleShares{{Rule: 7, Shares: []uint32{100_000, 900_000}}},
	}
	before := old.Without(0) // a copy
	for _, tt := range []struct {
		name string
		got  Epoch
		want Epoch
	}{
		{"add", old.With(2, 200_000), Epoch{
			Members: amounts(1, 480_000, 2, 200_000, 3, 320_000),
			Rules:   []RuleShares{{Rule: 7, Shares: []uint32{80_000, 200_000, 720_000}}},
		}},
		{"weight", old.With(3, 500_000), Epoch{
			Members: amounts(1, 500_000, 3, 500_000),
			Rules:   []RuleShares{{Rule: 7, Shares: []uint32{500_000, 500_000}}},
		}},
		{"drain", old.With(1, 0), Epoch{
			Members: amounts(1, 0, 3, Whole),
			Rules:   []RuleShares{{Rule: 7, Shares: []uint32{0, Whole}}},
		}},
		{"add beside one that drains", old.With(1, 0).With(5, 250_001), Epoch{
			Members: amounts(1, 0, 3, 749_999, 5, 250_001),
			Rules:   []RuleShares{{Rule: 7, Shares: []uint32{0, 749_999, 250_001}}},
		}},
		{"remove", old.Without(3), Epoch{
			Members: amounts(1, Whole),
			Rules:   []RuleShares{{Rule: 7, Shares: []uint32{Whole}}},
		}},
		{"remove none", old.Without(4), before},
	} {
		if !tt.got.equal(tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, tt.got, tt.want)
		}
	}
	if e := old.Without(0); !e.equal(before) || !old.equal(Epoch{
		ID: at(3), Pred: at(1), Members: amounts(1, 600_000, 3, 400_000), Retired: []Retirement{{9, 5}},
		Rules: []RuleShares{{Rule: 7, Shares: []uint32{100_000, 900_000}}},
	}) {
		t.Errorf("the epoch before changed: %+v", old)
	}
}

// TestWithIsValid: whatever the epoch, the members and each rule have the whole
// in all, and the participant has its amount of each.
func TestWithIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var weights []Member
		for i := range rapid.IntRange(1, 5).Draw(t, "members") {
			weights = append(weights, Member{ID: uint64(2 * i), Amount: rapid.Uint64Range(0, 1<<40).Draw(t, "weight")})
		}
		e, err := Shared(weights)
		if err != nil || e.Total() != Whole {
			t.Fatalf("%+v: %v", e, err)
		}
		for range rapid.IntRange(0, 2).Draw(t, "rules") {
			shares := scaled(rapid.SliceOfN(rapid.Uint32(), len(weights), len(weights)).Draw(t, "shares"), Whole)
			e.Rules = append(e.Rules, RuleShares{Rule: uint64(len(e.Rules)), Shares: shares})
		}
		id, amount := rapid.Uint64Range(0, 11).Draw(t, "id"), rapid.Uint64Range(0, Whole).Draw(t, "amount")
		next := e.With(id, amount)
		next.ID = at(1)
		if err := next.Validate(); err != nil {
			t.Fatal(err)
		}
		alone := len(next.Members) == 1 // nobody has the rest
		if !alone && next.Total() != Whole || next.AmountOf(99, id) != amount {
			t.Fatalf("with %d of %d: %+v", amount, id, next.Members)
		}
		for _, r := range next.Rules {
			if next.AmountOf(r.Rule, id) != amount {
				t.Fatalf("rule %d: %v", r.Rule, r.Shares)
			}
		}
	})
}
