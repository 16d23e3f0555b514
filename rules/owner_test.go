package rules_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// TestHomed states which limits are decided by what an owner grants, and how
// far from it an owner is.
func TestHomed(t *testing.T) {
	budget := func(p rules.Placement) rules.Limit { return rules.Limit{HasBudget: true, Placed: p} }
	strict := func(s rules.Scope) rules.Limit {
		return rules.Limit{Consistency: rules.Strict, Scope: s, Placed: rules.Owner}
	}
	for _, tc := range []struct {
		name            string
		l               rules.Limit
		homed, inRegion bool
	}{
		{"estimated", rules.Limit{}, false, false},
		{"estimated, placed", rules.Limit{Placed: rules.Owner}, false, false},
		{"strict", strict(rules.Global), true, false},
		{"strict, not placed", rules.Limit{Consistency: rules.Strict}, true, false},
		{"strict in the region", strict(rules.Region), true, true},
		{"strict in the daemon", strict(rules.NodeLocal), false, false},
		{"strict and unlimited", rules.Limit{Unlimited: true, Consistency: rules.Strict}, false, false},
		{"budget, not placed", budget(rules.Auto), false, false},
		{"budget, spread", budget(rules.Spread), false, false},
		{"budget, a region's", budget(rules.PerRegion), true, true},
		{"budget, at home", budget(rules.Owner), true, false},
		{"budget, at the region's home", rules.Limit{HasBudget: true, Placed: rules.Owner, Scope: rules.Region}, true, true},
		{"partition, at home", rules.Limit{Consistency: rules.Partition, Placed: rules.Owner}, true, false},
		{"partition, spread", rules.Limit{Consistency: rules.Partition, Placed: rules.Spread}, false, false},
	} {
		if got := tc.l.Homed(); got != tc.homed {
			t.Errorf("%s: homed is %v, want %v", tc.name, got, tc.homed)
		}
		if got := tc.l.HomeInRegion(); got != tc.inRegion {
			t.Errorf("%s: home in the region is %v, want %v", tc.name, got, tc.inRegion)
		}
	}
}

// TestReserves states how a limit is split between its owner and the others.
func TestReserves(t *testing.T) {
	shared := func(n, burst uint32, share rules.PPM) rules.Limit {
		return rules.Limit{Consistency: rules.Strict, Requests: n, Burst: burst, OnFailure: rules.Share, ReserveShare: share}
	}
	type split struct{ home, ownerBurst, reserve, reserveBurst uint32 }
	for _, tc := range []struct {
		name    string
		l       rules.Limit
		regions int
		want    split
	}{
		{"ten of a hundred for three", shared(100, 0, 10*rules.Percent), 3, split{91, 0, 3, 0}},
		{"what does not divide stays at home", shared(99, 7, 50*rules.Percent), 3, split{51, 4, 16, 1}},
		{"too little for anyone", shared(5, 0, 10*rules.Percent), 3, split{5, 0, 0, 0}},
		{"everything", shared(6, 3, 100*rules.Percent), 3, split{0, 0, 2, 1}},
		{"no other region", shared(100, 9, 10*rules.Percent), 1, split{100, 9, 0, 0}},
		{"regions unknown", shared(100, 9, 10*rules.Percent), 0, split{100, 9, 0, 0}},
		{"deny", rules.Limit{Consistency: rules.Strict, Requests: 9, ReserveShare: rules.Whole}, 3, split{9, 0, 0, 0}},
		{
			"eventual",
			rules.Limit{Requests: 100, Burst: 10, HasBudget: true, Budget: 5 * rules.Percent, Placed: rules.Owner},
			3,
			split{105, 10, 0, 0},
		},
		{
			"past 32 bits",
			rules.Limit{Requests: math.MaxUint32, HasBudget: true, Budget: rules.Percent, Placed: rules.Owner},
			3,
			split{math.MaxUint32, 0, 0, 0},
		},
	} {
		home, reserve := tc.l.OwnerLimit(tc.regions), tc.l.ReserveLimit(tc.regions)
		got := split{home.Requests, home.Burst, reserve.Requests, reserve.Burst}
		if got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// TestReservesNeverExceed checks that the owner and all reserves together never
// admit more than the limit with its budget, and that the limits of the owner
// and of the reserves keep all other fields.
func TestReservesNeverExceed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := rules.Limit{
			Unit: rules.Hour, Multiplier: 2, Name: "n", Algorithm: rules.Algorithm(rapid.IntRange(0, 4).Draw(t, "algorithm")),
			Requests: rapid.Uint32().Draw(t, "requests"), Burst: rapid.Uint32().Draw(t, "burst"),
			Budget: rules.PPM(rapid.Uint32().Draw(t, "budget")), HasBudget: rapid.Bool().Draw(t, "has budget"),
			Consistency:  rules.Consistency(rapid.IntRange(0, 2).Draw(t, "consistency")),
			Scope:        rules.Scope(rapid.IntRange(0, 2).Draw(t, "scope")),
			Placed:       rules.Placement(rapid.IntRange(0, 3).Draw(t, "placed")),
			OnFailure:    rules.OnFailure(rapid.IntRange(0, 2).Draw(t, "on_failure")),
			ReserveShare: rules.PPM(rapid.Uint32().Draw(t, "share")),
		}
		regions := rapid.IntRange(-1, 70).Draw(t, "regions")
		home, reserve := l.OwnerLimit(regions), l.ReserveLimit(regions)
		others := uint64(max(regions, 0))
		for _, n := range []struct{ home, reserve, all uint64 }{
			{home.Total(), reserve.Total(), l.Total()},
			{home.TotalBurst(), reserve.TotalBurst(), l.TotalBurst()},
		} {
			whole := n.home + others*n.reserve
			if whole > n.all || whole < min(n.all, math.MaxUint32) {
				t.Fatalf("%+v over %d regions: %d at home and %d in each, of %d", l, regions, n.home, n.reserve, n.all)
			}
		}
		if again := home.OwnerLimit(regions); again.Requests != home.Requests || again.Burst != home.Burst {
			t.Fatalf("taken off twice: %+v, then %+v", home, again)
		}
		if home.Grid() != l.Grid() || reserve.Grid() != l.Grid() || home.Homed() != l.Homed() || reserve.HasRights() != l.HasRights() {
			t.Fatalf("%+v changed to %+v and %+v", l, home, reserve)
		}
	})
}
