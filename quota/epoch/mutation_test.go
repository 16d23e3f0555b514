package epoch

import (
	"fmt"
	"slices"
	"testing"
)

// TestMutations breaks one rule at a time and shows that the same explorer
// finds it, in the same world that is clean with the rule in force.
func TestMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of search for what is broken on purpose")
	}
	pair := genesis(0, 1, 2, 2, 2)
	swap := []Epoch{{ID: at(1), Members: amounts(1, 4, 2, 0)}}
	leased := genesis(1, 1, 2, 2, 2, 3, 2)
	drop := []Epoch{{ID: at(1), Horizon: 1, Members: amounts(1, 3, 2, 3)}}
	tests := []*setup{
		{name: "latest epoch known", mutation: mutationLatest, genesis: pair, clock: 1, proposals: swap},
		{name: "activation at a label", mutation: mutationSchedule, genesis: pair, clock: 2, proposals: swap},
		{
			name: "raise without carry", mutation: mutationRaiseNow, genesis: pair, clock: 2, carry: 1,
			proposals: swap,
		},
		{
			name: "shares of different limits", mutation: mutationLimit, genesis: pair, clock: 1,
			proposals: []Epoch{{ID: at(1), Members: amounts(1, 4, 2, 4)}},
		},
		{name: "from the current label", mutation: mutationCurrent, genesis: pair, clock: 1, proposals: swap},
		{name: "amnesia", mutation: mutationAmnesia, genesis: pair, clock: 2, lapses: 1, proposals: swap},
		{
			name: "restart without a fence", mutation: mutationNoFence, genesis: pair, clock: 1, crashes: 1,
			proposals: swap,
		},
		{
			name: "predecessor's first label not inherited", broken: mutantNoInherit,
			genesis: pair, clock: 2, proposals: []Epoch{
				{ID: at(1), Members: amounts(1, 4)},
				{ID: at(2), Pred: at(1), Members: amounts(1, 4)},
			},
		},
		{
			name: "no reports", broken: mutantNoReports, genesis: genesis(0, 1, 4), joiners: []uint64{2},
			clock: 2, proposals: []Epoch{
				{ID: at(1), Members: amounts(1, 0, 2, 4)}, {ID: at(2), Members: amounts(1, 4)},
			},
		},
		{
			name: "operator retires the living", mutation: mutationLie, genesis: pair, clock: 2,
			proposals: []Epoch{{ID: at(1), Members: amounts(1, 4), Retired: []Retirement{{2, 1}}}},
		},
		{
			name: "grants for every epoch", mutation: mutationFreeGrants, genesis: leased, clock: 2, ride: true,
			proposals: drop,
		},
		{
			name: "grants forgotten", mutation: mutationForgetGrant, genesis: leased, clock: 2, ride: true,
			crashes: 2, proposals: drop,
		},
		{
			name: "extensions before the stop for all windows", mutation: mutationFreeWindows, genesis: leased, clock: 3,
			ride: true, stops: 1, resumes: 1, proposals: drop,
		},
		{
			name: "one member's word takes a share back", broken: mutantEasyReclaim,
			genesis: leased, clock: 3, ride: true, proposals: drop,
		},
		{
			name: "one's own grant is enough", broken: mutantEasyUse, genesis: leased, clock: 3, ride: true,
			proposals: drop,
		},
		{
			name: "horizon of the settled epoch only", broken: mutantLowestOnly,
			genesis: genesis(1, 1, 2, 2, 2), joiners: []uint64{3}, clock: 3, ride: true,
			proposals: []Epoch{
				{ID: at(1), Horizon: 1, Members: amounts(1, 2, 2, 2, 3, 0)},
				{ID: at(2), Horizon: 1, Pred: at(1), Members: amounts(1, 4, 3, 0)},
			},
		},
	}
	for _, s := range tests {
		t.Run(s.name, func(t *testing.T) {
			how := ""
			var bad *found
			if len(s.genesis.Members)+len(s.joiners) == 2 {
				var states int
				states, _, bad = explore(newWorld(s), 100_000)
				how = fmt.Sprintf("%d states", states)
			}
			for seed := uint64(0); bad == nil && seed < 30_000; seed++ {
				_, _, bad = wander(s, seed, 200)
				how = fmt.Sprintf("random run %d", seed)
			}
			if bad == nil {
				t.Errorf("not found: %s", how)
			}
		})
	}
}

// TestMutationsLower is the schedule for a mutation that neither search finds
// in its time: 1 and 3 acknowledge an epoch and then a lower one, which their
// first acknowledgement could not list.
func TestMutationsLower(t *testing.T) {
	s := &setup{
		genesis: genesis(0, 1, 4, 3, 0), joiners: []uint64{2}, clock: 1, ride: true,
		proposals: []Epoch{
			{ID: at(1), Members: amounts(1, 0, 2, 4)}, {ID: at(2), Members: amounts(1, 4)},
		},
	}
	script := []string{
		"ack 0 1", "ack 1 1", "ack 0 0", "ack 1 0", "ack 2 0",
		"take 0 1", "take 2 2", "take 2 3", "tick 0", "tick 2",
	}
	for _, p := range []mutation{mutationNone, mutationLower} {
		s.mutation = p
		w := newWorld(s)
		for _, act := range script {
			if slices.Contains(w.actions(), act) {
				w.do(act)
			}
		}
		if _, sum, bound := w.worst(); (sum > bound) != (p == mutationLower) {
			t.Errorf("plant %d: %d of %d", p, sum, bound)
		}
	}
}
