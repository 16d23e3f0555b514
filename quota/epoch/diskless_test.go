package epoch

import (
	"slices"
	"testing"
)

// diskless marks members.
func diskless(ms []Member, ids ...uint64) []Member {
	for i := range ms {
		ms[i].Diskless = slices.Contains(ids, ms[i].ID)
	}
	return ms
}

// disklessWorlds are worlds with members that have no disk.
func disklessWorlds() []*setup {
	one := Epoch{Horizon: 1, Members: diskless(amounts(1, 2, 2, 2), 2)}
	two := Epoch{Horizon: 1, Members: diskless(amounts(1, 0, 2, 2, 3, 2), 2, 3)}
	return []*setup{
		{
			name: "one extends", genesis: one, clock: 3, ride: true,
			proposals: []Epoch{{ID: at(1), Horizon: 1, Members: amounts(1, 4)}},
		},
		{
			name: "one extends two", large: true, genesis: two, clock: 2, ride: true, holders: []uint64{2, 3},
			proposals: []Epoch{{ID: at(1), Horizon: 1, Members: diskless(amounts(1, 0, 2, 4), 2)}},
		},
		{
			name: "the one that extends restarts", large: true, genesis: one, clock: 2, crashes: 1, ride: true,
			proposals: []Epoch{{ID: at(1), Horizon: 1, Members: amounts(1, 4)}},
		},
		{
			name: "another one extends", large: true, joiners: []uint64{3}, genesis: one, clock: 2, ride: true,
			proposals: []Epoch{
				{ID: at(1), Horizon: 1, Members: diskless(amounts(1, 2, 2, 2, 3, 0), 2)},
				{ID: at(2), Pred: at(1), Horizon: 1, Members: diskless(amounts(1, 2, 3, 2), 2)},
			},
		},
	}
}

// TestExploreDiskless: a member without a disk uses no share that the others
// have reclaimed.
func TestExploreDiskless(t *testing.T) {
	for _, s := range disklessWorlds() {
		t.Run(s.name, func(t *testing.T) {
			limit := worldStates
			if s.large || testing.Short() {
				limit /= 20
			}
			n, all, bad := explore(newWorld(s), limit)
			t.Logf("%d states, all: %v", n, all)
			if bad != nil {
				t.Error(bad)
			}
		})
	}
}

// TestDisklessDieAtOnce: when all members without a disk die, those with one
// reclaim all shares after the horizon, also where a single one is left.
func TestDisklessDieAtOnce(t *testing.T) {
	for _, durable := range []int{1, 2, 3} {
		g := Epoch{Horizon: 30_000}
		e := Epoch{ID: at(1_000), Horizon: 30_000}
		for id := uint64(1); id <= 9; id++ {
			m := Member{ID: id, Amount: 10, Diskless: id > uint64(durable)}
			if g.Members = append(g.Members, m); !m.Diskless {
				m.Amount = 90 / uint64(durable)
				e.Members = append(e.Members, m)
			}
		}
		var all []*Table
		for _, m := range g.Members {
			tb := mustNew(t, m.ID, g)
			tb.Stored(tb.Extend(10_000))
			all = append(all, tb)
		}
		left, dead := all[:durable], all[durable:]
		for _, from := range left {
			for _, to := range dead {
				if x, ok := from.ExtendHorizon(to.Owner(), 1_000); !ok || to.TakeExtension(x) != nil {
					t.Fatal("no horizon was extended")
				}
			}
		}
		wantShareOf := func(tb *Table, x int64, want uint64, reason Reason) {
			t.Helper()
			if got, why := tb.Part(90, x, 0); got != want || why != reason {
				t.Errorf("%d with a disk, participant %d at %d: %d (%v), want %d (%v)", durable, tb.Owner(), x, got, why, want, reason)
			}
		}
		if durable <= 2 { // three extend one another
			wantShareOf(left[0], 2_000, 10, ReasonEpoch)
		}
		wantShareOf(dead[0], 2_000, 10, ReasonEpoch)
		for _, tb := range left {
			if err := tb.Learn(e); err != nil {
				t.Fatal(err)
			}
			acknowledge(t, tb, e.ID, 1_500)
		}
		exchange(t, left...)
		wantSettled(t, e.ID, 31_001, left...)
	}
}

// TestDisklessExtendNobody: only members with a disk extend horizons, as long
// as there is one.
func TestDisklessExtendNobody(t *testing.T) {
	for _, durable := range []bool{true, false} {
		g := Epoch{Horizon: 30_000, Members: diskless(amounts(1, 10, 2, 10, 3, 10, 4, 10), 2, 3, 4)}
		g.Members[0].Diskless = !durable
		a := mustNew(t, 2, g)
		a.Stored(a.Extend(10_000))
		for _, by := range []uint64{3, 4} {
			b := mustNew(t, by, g)
			b.Stored(b.Extend(10_000))
			x, ok := b.ExtendHorizon(2, 1_000)
			if !ok || a.TakeExtension(x) != nil {
				t.Fatal("no horizon was extended")
			}
		}
		want := ReasonEpoch
		if durable {
			want = ReasonAlone
		}
		if _, got := a.Part(40, 2_000, 0); got != want {
			t.Errorf("a member with a disk: %v, reason %v: want %v", durable, got, want)
		}
	}
}

// TestWaitsFor: the last daemon with a disk leaves, two without one share its
// rights, and one of these dies. No epoch can be settled without the other,
// whose table names the dead one also where it acknowledged all it knew.
func TestWaitsFor(t *testing.T) {
	g := Epoch{Horizon: 30_000, Members: diskless(amounts(1, 5, 2, 5, 3, 5), 2, 3)}
	a, b, c := mustNew(t, 1, g), mustNew(t, 2, g), mustNew(t, 3, g)
	without := Epoch{ID: at(20_000), Horizon: 30_000, Members: diskless(amounts(2, 5, 3, 5), 2, 3)}
	again := Epoch{ID: at(30_000), Pred: g.ID, Horizon: 30_000, Members: diskless(amounts(1, 5, 2, 5), 2)}
	if err := b.Learn(without); err != nil {
		t.Fatal(err)
	}
	exchange(t, b, c)
	acknowledge(t, b, without.ID, 20_000)
	acknowledge(t, c, without.ID, 20_000)
	exchange(t, b, c) // then 3 dies
	want := func(ids ...uint64) {
		t.Helper()
		if got := b.WaitsFor(b.Len() - 1); !slices.Equal(got, ids) {
			t.Errorf("waits for %d, want %d", got, ids)
		}
	}
	want(1)
	if err := a.Learn(again); err != nil {
		t.Fatal(err)
	}
	exchange(t, a, b)
	want(1, 2, 3)
	acknowledge(t, a, again.ID, 30_000)
	acknowledge(t, b, again.ID, 30_000)
	exchange(t, a, b)
	want(3)
	retires := again
	retires.ID, retires.Retired = at(40_000), []Retirement{{ID: 3, From: 40_000}}
	if err := a.Learn(retires); err != nil {
		t.Fatal(err)
	}
	exchange(t, a, b)
	acknowledge(t, a, retires.ID, 40_000)
	acknowledge(t, b, retires.ID, 40_000)
	exchange(t, a, b)
	want()
	wantSettled(t, retires.ID, 40_001, a, b)
}
