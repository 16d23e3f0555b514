package quorum

import "testing"

// planted are rules broken one at a time, each in a world that is clean with
// the rule in force.
func planted() []*setup {
	return []*setup{
		{name: "votes before the store", broken: flawEarly, async: true,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 2, wants: 2, crash: 2, pokes: 1},
		{name: "an older ballot is taken", broken: flawOlder,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 1, wants: 3, pokes: 1},
		{name: "a takeover need not know the marks", broken: flawBlank,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 1, wants: 2},
		{name: "half is a majority", half: true,
			daemon: 2, owners: []int{0, 1}, limit: 2, headroom: 1, wants: 2},
		{name: "votes at once after a loss of memory", broken: flawAmnesia,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 2, wants: 2, lose: 1, pokes: 1},
		{name: "copies from a majority after a loss of memory", broken: flawFew,
			daemon: 5, owners: []int{0, 1}, limit: 2, headroom: 2, wants: 2, lose: 1, pokes: 2},
		{name: "votes do not tell lives", blind: true,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 2, wants: 2, lose: 1, pokes: 2},
		{name: "what is copied keeps its promise", broken: flawPromise,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 1, wants: 3, lose: 1, pokes: 3},
		{name: "no seal at a change of layout", broken: flawOpen,
			daemon: 5, set: []int{0, 1, 2}, change: []int{2, 3, 4}, owners: []int{1, 4}, limit: 2, headroom: 2, wants: 2, pokes: 2},
		{name: "a keeper that begins anew passes for the one before", oneTerm: true,
			daemon: 3, owners: []int{0}, limit: 2, headroom: 1, wants: 3, rebirth: 1},
	}
}

// TestPlanted breaks one rule at a time and shows that the same search finds it,
// in the same world that is clean with the rule in force.
func TestPlanted(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of search for what is broken on purpose")
	}
	for _, s := range planted() {
		t.Run(s.name, func(t *testing.T) {
			runs := uint64(20_000)
			for seed := range runs {
				if _, bad := wander(s, seed, 150); bad != nil {
					t.Logf("random run %d, %d steps", seed, len(bad.path))
					if testing.Verbose() {
						t.Logf("%v", bad)
					}
					runs = seed
					break
				}
			}
			if runs == 20_000 {
				t.Fatalf("not found in %d random runs", runs)
			}
			sound := *s
			sound.broken, sound.blind, sound.half, sound.oneTerm = 0, false, false, false
			for seed := range min(runs+1, 500) {
				if _, bad := wander(&sound, seed, 150); bad != nil {
					t.Fatalf("with the rule in force, run %d: %v", seed, bad)
				}
			}
		})
	}
}

// TestWander takes random walks through worlds too large to explore.
func TestWander(t *testing.T) {
	for _, s := range []*setup{
		{name: "three lose disks", daemon: 3, owners: []int{0, 1, 2}, limit: 3, headroom: 1, wants: 3, crash: 3, lose: 3, pokes: 8, rebirth: 1, async: true, late: true},
		{name: "five", daemon: 5, owners: []int{0, 1, 4}, limit: 3, headroom: 2, wants: 4, crash: 3, lose: 2, pokes: 8, rebirth: 1, async: true},
		{name: "layout changes", daemon: 6, set: []int{0, 1, 2}, change: []int{0, 2, 3, 4, 5}, owners: []int{0, 4}, limit: 3, headroom: 1, wants: 4, crash: 2, lose: 1, pokes: 10, async: true},
		{name: "layout changes and disks are lost", daemon: 5, set: []int{0, 1, 2}, change: []int{1, 3, 4}, owners: []int{0, 3}, limit: 3, headroom: 1, wants: 4, crash: 1, lose: 2, pokes: 12, late: true},
	} {
		t.Run(s.name, func(t *testing.T) {
			runs := uint64(1_000)
			if testing.Short() {
				runs = 100
			}
			full, most := 0, uint64(0)
			for seed := range runs {
				w, bad := wander(s, seed, 250)
				if bad != nil {
					t.Fatalf("run %d: %v", seed, bad)
				}
				most = max(most, w.worst())
				if w.worst() == s.limit {
					full++
				}
			}
			t.Logf("%d runs, %d consumed all of %d", runs, full, s.limit)
			if most != s.limit {
				t.Errorf("no run consumed more than %d: want %d in some, or the test shows nothing", most, s.limit)
			}
		})
	}
}
