package epoch

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// found is a violation: the actions, and the sum of the shares of the window.
type found struct {
	path       []string
	x          int64
	sum, bound uint64
}

func (f *found) String() string {
	return fmt.Sprintf("label %d: %d of %d after:\n\t%s", f.x, f.sum, f.bound,
		strings.Join(f.path, "\n\t"))
}

// state is what can be explored: a world or a union.
type state[S any] interface {
	actions() []string
	do(act string)
	clone() S
	key() [16]byte
	worst() (x int64, sum, bound uint64)
}

// explore visits every state that can be reached, up to limit states, and
// returns how many, whether those are all, and the worst violation.
func explore[S state[S]](w S, limit int) (states int, all bool, bad *found) {
	type step struct {
		w     S
		acts  []string
		taken int
	}
	seen := map[[16]byte]struct{}{}
	stack := []step{{w: w, acts: w.actions()}}
	seen[w.key()] = struct{}{}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.taken == len(top.acts) {
			stack = stack[:len(stack)-1]
			continue
		}
		act := top.acts[top.taken]
		top.taken++
		w := top.w
		if top.taken < len(top.acts) {
			w = w.clone() // the last action may have the state
		}
		w.do(act)
		k := w.key()
		if _, ok := seen[k]; ok {
			continue
		}
		seen[k] = struct{}{}
		if x, sum, bound := w.worst(); sum > bound &&
			(bad == nil || sum*bad.bound > bad.sum*bound) {
			bad = &found{x: x, sum: sum, bound: bound}
			for _, st := range stack {
				bad.path = append(bad.path, st.acts[st.taken-1])
			}
		}
		if len(seen) >= limit {
			return len(seen), false, bad
		}
		stack = append(stack, step{w: w, acts: w.actions()})
	}
	return len(seen), true, bad
}

// wander performs random actions until none is left or steps are done. It
// returns how many, whether any participant used more than the genesis alone
// allows, and the worst violation.
func wander(s *setup, seed uint64, steps int) (taken int, raised bool, bad *found) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(s)
	// Some runs hardly tick, some hardly anything else.
	tick := rng.IntN(8)
	var path []string
	for taken < steps {
		acts := w.actions()
		if len(acts) == 0 {
			break
		}
		act := acts[rng.IntN(len(acts))]
		for range tick {
			if strings.HasPrefix(act, "tick") {
				act = acts[rng.IntN(len(acts))]
			}
		}
		w.do(act)
		taken++
		path = append(path, act)
		if x, sum, bound := w.worst(); sum > bound &&
			(bad == nil || sum*bad.bound > bad.sum*bound) {
			bad = &found{append([]string(nil), path...), x, sum, bound}
		}
	}
	for _, id := range w.star {
		raised = raised || id != ID{}
	}
	return taken, raised, bad
}

func genesis(horizon int64, pairs ...uint64) Epoch {
	e, err := Genesis(horizon, amounts(pairs...))
	if err != nil {
		panic(err)
	}
	return e
}

// scopes are the small worlds that are explored to the end.
func scopes() []*setup {
	pair := genesis(0, 1, 2, 2, 2)
	three := genesis(0, 1, 2, 2, 2, 3, 2)
	leased := genesis(1, 1, 0, 2, 0, 3, 4)
	return []*setup{
		{name: "two move", genesis: pair, clock: 2, proposals: []Epoch{
			{ID: at(1), Members: amounts(1, 4, 2, 0)}, {ID: at(2), Members: amounts(1, 0, 2, 4)},
		}},
		{name: "two chain", genesis: pair, clock: 2, prune: true, proposals: []Epoch{
			{ID: at(1), Members: amounts(1, 4, 2, 0)},
			{ID: at(2), Pred: at(1), Members: amounts(1, 0, 2, 4)},
		}},
		// Each acknowledgement names one epoch. If that of the second counted
		// for the first as well, a participant that jumped over the first would
		// let the other one use it.
		{name: "there and back", genesis: pair, clock: 2, proposals: []Epoch{
			{ID: at(1), Members: amounts(1, 1, 2, 3)}, {ID: at(2), Members: amounts(1, 2, 2, 2)},
		}},
		{name: "two restart", large: true, genesis: pair, clock: 2, crashes: 1, proposals: []Epoch{
			{ID: at(1), Members: amounts(1, 4, 2, 0)},
			{ID: at(2), Pred: at(1), Members: amounts(1, 0, 2, 4)},
		}},
		{name: "carry", genesis: pair, clock: 3, carry: 1, proposals: []Epoch{
			{ID: at(1), Members: amounts(1, 4, 2, 0)},
		}},
		{name: "limit", genesis: pair, clock: 2, proposals: []Epoch{
			{ID: at(1), Members: amounts(1, 4, 2, 4)}, {ID: at(2), Members: amounts(1, 1, 2, 1)},
		}},
		{
			name: "join and leave", genesis: genesis(0, 1, 4), joiners: []uint64{2}, clock: 2,
			proposals: []Epoch{
				{ID: at(1), Members: amounts(1, 2, 2, 2)},
				{ID: at(2), Pred: at(1), Members: amounts(2, 4)},
			},
		},
		{
			name: "siblings", genesis: genesis(0, 1, 4), joiners: []uint64{2}, clock: 2,
			proposals: []Epoch{
				{ID: at(1), Members: amounts(1, 1, 2, 3)}, {ID: at(2), Members: amounts(1, 4)},
			},
		},
		{name: "retire", genesis: pair, clock: 2, kills: 1, proposals: []Epoch{
			{ID: at(1), Members: amounts(1, 4), Retired: []Retirement{{2, 2}}},
		}},
		{name: "three move", genesis: three, clock: 1, ride: true, proposals: []Epoch{
			{ID: at(1), Members: amounts(1, 6, 2, 0, 3, 0)},
		}},
		{
			name: "three siblings", large: true, genesis: genesis(0, 1, 4, 2, 0), joiners: []uint64{3}, clock: 1,
			ride: true, takers: []uint64{1, 3}, proposals: []Epoch{
				{ID: at(1), Members: amounts(2, 0, 3, 4)}, {ID: at(2), Members: amounts(1, 4)},
			},
		},
		{
			name: "three horizon", large: true, genesis: leased, clock: 2, ride: true,
			takers: []uint64{1}, holders: []uint64{3},
			proposals: []Epoch{{ID: at(1), Horizon: 1, Members: amounts(1, 4, 2, 0)}},
		},
		{
			name: "three horizon restart", large: true, genesis: leased, clock: 1, ride: true, crashes: 1,
			takers: []uint64{1}, holders: []uint64{3},
			proposals: []Epoch{{ID: at(1), Horizon: 1, Members: amounts(1, 4, 2, 0)}},
		},
		{
			name: "three join and leave", large: true, genesis: genesis(1, 1, 0, 2, 4), joiners: []uint64{3}, clock: 1,
			ride: true, takers: []uint64{1}, holders: []uint64{2}, proposals: []Epoch{
				{ID: at(1), Horizon: 1, Members: amounts(1, 0, 2, 4, 3, 0)},
				{ID: at(2), Horizon: 1, Pred: at(1), Members: amounts(1, 4, 3, 0)},
			},
		},
	}
}

// worldStates is how many states of a small world are visited at most. The
// worlds that are to be visited whole have less.
const worldStates = 100_000

// TestExplore visits every state of the small worlds. Those of more states than
// worldStates are cut short, except with EPOCH_LONG=1: that takes two minutes.
// So for TestExploreUnion.
func TestExplore(t *testing.T) {
	limit := worldStates
	switch {
	case os.Getenv("EPOCH_LONG") != "":
		limit = 20_000_000
	case testing.Short():
		limit = 1000
	}
	for _, s := range scopes() {
		t.Run(s.name, func(t *testing.T) {
			limit := limit
			if s.large {
				limit /= 20
			}
			states, all, bad := explore(newWorld(s), limit)
			if bad != nil {
				t.Errorf("%v", bad)
			}
			if !all && !s.large && limit >= worldStates {
				t.Errorf("cut short after %d states: want all", states)
			}
		})
	}
}

// randomSetup draws a world of up to six participants and four proposals:
// chains and branches, participants that join and leave, with and without
// horizons, restarts, lost records, deaths, pruning and late extensions.
func randomSetup(seed uint64) *setup {
	rng := rand.New(rand.NewPCG(seed, 3))
	n := 2 + rng.IntN(5)
	start := 1 + rng.IntN(n)
	horizon := int64(rng.IntN(3))
	const total = 12
	noDisk := 0 // participants from here on have no disk
	if rng.IntN(2) == 0 {
		noDisk = 1 + rng.IntN(n)
	}
	members := func(ids []int) []Member {
		var ms []Member
		left := uint64(total)
		for i, id := range ids {
			amount := rng.Uint64N(left + 1)
			if i == len(ids)-1 {
				amount = left
			}
			left -= amount
			ms = append(ms, Member{ID: uint64(id), Amount: amount, Diskless: noDisk > 0 && id > noDisk})
		}
		return ms
	}
	some := func(atLeast int) []int {
		ids := rng.Perm(n)[:atLeast+rng.IntN(n-atLeast+1)]
		for i := range ids {
			ids[i]++
		}
		return ids
	}
	s := &setup{
		clock: int64(2 + rng.IntN(4)), carry: int64(rng.IntN(2)),
		lead:    int64(rng.IntN(3)),
		crashes: rng.IntN(3), prune: rng.IntN(2) == 0, ride: rng.IntN(2) == 0,
		late: rng.IntN(2) == 0,
	}
	if rng.IntN(2) == 0 {
		s.stops = 1 + rng.IntN(3)
		s.resumes, s.ahead = s.stops, int64(rng.IntN(2))
	}
	if rng.IntN(3) == 0 {
		s.lapses = 1 + rng.IntN(2)
	}
	ids := make([]int, start)
	for i := range ids {
		ids[i] = i + 1
	}
	s.genesis = Epoch{Horizon: horizon, Members: members(ids)}
	for id := start + 1; id <= n; id++ {
		s.joiners = append(s.joiners, uint64(id))
	}
	for p := range 2 + rng.IntN(3) {
		e := Epoch{ID: at(int64(p + 1)), Horizon: horizon}
		if p > 0 && rng.IntN(3) > 0 {
			e.Pred = at(int64(1 + rng.IntN(p)))
		}
		if rng.IntN(8) == 0 {
			e.Horizon = int64(rng.IntN(3)) // a change of the setting
		}
		ids := some(1)
		e.Members = members(ids)
		sortMembers(e.Members)
		if rng.IntN(6) == 0 {
			if k := uint64(1 + rng.IntN(n)); !e.Has(k) {
				e.Retired, s.kills = []Retirement{{k, 1 + rng.Int64N(s.clock)}}, 1
			}
		}
		s.proposals = append(s.proposals, e)
	}
	return s
}

func sortMembers(ms []Member) {
	slices.SortFunc(ms, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
}

func TestWander(t *testing.T) {
	runs := uint64(200)
	if testing.Short() {
		runs = 30
	}
	if r, err := strconv.ParseUint(os.Getenv("EPOCH_RUNS"), 10, 64); err == nil {
		runs = r
	}
	first, _ := strconv.ParseUint(os.Getenv("EPOCH_SEED"), 10, 64)
	raised := 0
	for seed := first; seed < first+runs; seed++ {
		s := randomSetup(seed)
		_, high, bad := wander(s, seed, 300)
		if high {
			raised++
		}
		if bad != nil {
			t.Fatalf("EPOCH_SEED=%d EPOCH_RUNS=1 go test -run '^TestWander$': genesis %+v, proposals %+v: %v",
				seed, s.genesis, s.proposals, bad)
		}
	}
	if runs >= 50 && raised*5 < int(runs) {
		t.Errorf("a later epoch was used in %d of %d runs: the worlds are too slow", raised, runs)
	}
}

// TestWanderFinds breaks rules in the random worlds, so that clean runs mean
// something there too.
func TestWanderFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of random runs")
	}
	tests := []struct {
		name     string
		mutation mutation
	}{
		{"latest epoch known", mutationLatest},
		{"raise without carry", mutationRaiseNow},
		{"from the current label", mutationCurrent},
		{"amnesia", mutationAmnesia},
		{"restart without a fence", mutationNoFence},
		{"resume without accounts", mutationNoAccounts},
		{"resume twice", mutationTwice},
		{"resume runs before a crash", mutationNoUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(2000) {
				s := randomSetup(seed)
				s.mutation = tt.mutation
				if _, _, bad := wander(s, seed, 300); bad != nil {
					return
				}
			}
			t.Error("not found in 2000 random worlds")
		})
	}
}
