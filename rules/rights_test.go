package rules_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// TestHasRights states which limits are bounded by rights.
func TestHasRights(t *testing.T) {
	for _, tc := range []struct {
		name string
		l    rules.Limit
		want bool
	}{
		{"estimated", rules.Limit{}, false},
		{"budget", rules.Limit{HasBudget: true, Budget: rules.Percent}, true},
		{"budget of nothing", rules.Limit{HasBudget: true}, true},
		{"partition", rules.Limit{Consistency: rules.Partition}, true},
		{"partition, budget of nothing", rules.Limit{Consistency: rules.Partition, HasBudget: true}, true},
		{"of the region", rules.Limit{Scope: rules.Region, HasBudget: true}, true},
		{"strict", rules.Limit{Consistency: rules.Strict, HasBudget: true}, false},
		{"of the node", rules.Limit{Scope: rules.NodeLocal, Consistency: rules.Partition}, false},
		{"unlimited", rules.Limit{Unlimited: true, HasBudget: true}, false},
	} {
		if got := tc.l.HasRights(); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestTotal compares the rights of a window with L(1+b) in whole numbers of any
// size.
func TestTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := rules.Limit{
			Requests: rapid.Uint32().Draw(t, "requests"), Burst: rapid.Uint32().Draw(t, "burst"),
			Budget: rules.PPM(rapid.Uint32().Draw(t, "budget")), HasBudget: rapid.Bool().Draw(t, "has budget"),
			Consistency: rules.Consistency(rapid.IntRange(0, 2).Draw(t, "consistency")),
		}
		budget := int64(0)
		if l.HasBudget && l.Consistency == rules.Eventual {
			budget = int64(l.Budget)
		}
		for _, n := range []struct {
			written uint32
			got     uint64
		}{{l.Requests, l.Total()}, {l.Burst, l.TotalBurst()}} {
			want := big.NewInt(int64(n.written))
			want.Mul(want, big.NewInt(1_000_000+budget)).Div(want, big.NewInt(1_000_000))
			if want.Cmp(new(big.Int).SetUint64(n.got)) != 0 {
				t.Fatalf("%d and a budget of %d ppm: %d, want %s", n.written, budget, n.got, want)
			}
		}
	})
	most := rules.Limit{Requests: math.MaxUint32, Budget: math.MaxUint32, HasBudget: true}
	if got, want := most.Total(), uint64(18_451_039_032_414); got != want {
		t.Errorf("the greatest limit and budget give %d rights, want %d", got, want)
	}
}

// TestHashOfWeights checks that pinned weights and owners are part of the hash
// of a set, and the place of the rights is not.
func TestHashOfWeights(t *testing.T) {
	hash := func(l rules.Limit) uint64 {
		l.Unit, l.Multiplier = rules.Minute, 1
		set, err := rules.NewSet([]rules.DomainNode{{Name: "d", Children: []rules.Node{{Key: "k", Limit: &l}}}})
		if err != nil {
			t.Fatal(err)
		}
		return set.Hash()
	}
	a := rules.Limit{Weights: []rules.Weight{{Region: "eu", Share: 400_000}, {Region: "us", Share: 600_000}}}
	b := rules.Limit{Weights: []rules.Weight{{Region: "eu", Share: 600_000}, {Region: "us", Share: 400_000}}}
	c := rules.Limit{Weights: []rules.Weight{{Region: "ap", Share: 400_000}, {Region: "us", Share: 600_000}}}
	if hash(a) == hash(b) || hash(a) == hash(c) || hash(a) == hash(rules.Limit{}) {
		t.Error("other weights, the same hash")
	}
	us, eu := hash(rules.Limit{Home: "us"}), hash(rules.Limit{Home: "eu"})
	if us == eu || us == hash(rules.Limit{}) {
		t.Error("another home, the same hash")
	}
	if hash(rules.Limit{}) != hash(rules.Limit{Placed: rules.Spread}) {
		t.Error("the size of the cluster is part of the hash")
	}
}
