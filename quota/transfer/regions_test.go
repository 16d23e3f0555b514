package transfer

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/internal/sat"
)

// late reports whether transfers come too late: a round trip exceeds a quarter
// of the window, and half of it or half a second in a window of less than 4 s.
func late(t Policy) bool {
	exceeds := func(trips int64) bool {
		return new(big.Int).Mul(big.NewInt(max(t.DelayMS, 0)), big.NewInt(trips)).Cmp(big.NewInt(t.WindowMS)) > 0
	}
	return t.WindowMS <= 0 || exceeds(8) && (t.WindowMS >= 4000 || exceeds(4) || t.DelayMS > 250)
}

// spareLaw returns an error for wrong spare rights of a region.
func spareLaw(t Policy, left int64, r Region, spare uint64) error {
	if late(t) {
		if spare > 0 {
			return fmt.Errorf("spares %d where gifts come too late", spare)
		}
		return nil
	}
	if spare > r.Available {
		return fmt.Errorf("spares %d of %d", spare, r.Available)
	}
	if spare == 0 {
		return nil
	}
	window := big.NewInt(t.WindowMS)
	span := big.NewInt(min(max(left, 0), t.WindowMS))
	floor := exact(whole(r.Allotment), span, window, false)
	if t.Entity {
		floor = exact(floor, whole(min(uint64(t.Budget), 125_000)), big.NewInt(1_000_000), false)
	} else {
		floor = exact(floor, big.NewInt(3), big.NewInt(8), false)
	}
	kept := whole(r.Available - spare)
	if kept.Cmp(floor) < 0 {
		return fmt.Errorf("keeps %d under the floor of %d", kept, floor)
	}
	horizon := new(big.Int).Add(new(big.Int).Mul(big.NewInt(max(t.DelayMS, 0)), big.NewInt(4)), big.NewInt(200))
	if big.NewInt(max(left, 0)).Cmp(horizon) < 0 {
		horizon = big.NewInt(max(left, 0))
	}
	use := exact(whole(r.Offered), horizon, big.NewInt(1000), true)
	own := exact(use, big.NewInt(5), big.NewInt(4), false)
	if kept.Cmp(own) < 0 {
		return fmt.Errorf("keeps %d of the %d that its own traffic needs", kept, own)
	}
	if most := whole(r.Available); spare < r.Available && kept.Cmp(floor) > 0 && kept.Cmp(own) > 0 {
		return fmt.Errorf("keeps %d of %d for nothing: floor %d, traffic %d", kept, most, floor, own)
	}
	return nil
}

func TestSpareLeavesTheFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms, left, r := drawTerms(t), instant(t, "left"), drawRegion(t)
		if err := spareLaw(terms, left, r, terms.Spare(left, r)); err != nil {
			t.Fatal(err)
		}
	})
}

// A short region would run dry within a round trip and two ticks, or has used
// half as an entity's and has less than half of what it wants; it needs no more
// than the limit leaves.
func TestShortage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms, left, r, room := drawTerms(t), instant(t, "left"), drawRegion(t), amount(t, "room")
		trip := new(big.Int).Add(new(big.Int).Mul(big.NewInt(max(terms.DelayMS, 0)), big.NewInt(2)), big.NewInt(200))
		use := exact(whole(r.Offered), trip, big.NewInt(1000), true)
		if use.Cmp(whole(math.MaxUint64)) > 0 {
			use = whole(math.MaxUint64)
		}
		want := whole(r.Available).Cmp(use) < 0 || terms.Entity &&
			new(big.Int).Lsh(whole(r.Available), 1).Cmp(whole(r.Allotment)) <= 0 && r.Available < Ahead(left, r.Offered)/2
		want = want && !late(terms) && r.Offered > 0
		if got := terms.Short(left, r); got != want {
			t.Fatalf("hungry %v, want %v", got, want)
		}
		if need := terms.Need(left, r, room); need > room {
			t.Fatalf("needs %d where the limit leaves %d", need, room)
		}
	})
}

// A shortage is announced immediately, and then not for a round trip and two
// ticks, unless the need doubles.
func TestShortageIsAnnouncedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := Policy{WindowMS: 60_000, DelayMS: rapid.Int64Range(-1, 500).Draw(t, "delay")}
		pause := 2*max(terms.DelayMS, 0) + 200
		var h Shortage
		var now, told int64 = 0, -10_000
		var last uint64
		for range 60 {
			now += rapid.Int64Range(0, 200).Draw(t, "gap")
			r := Region{100, 0, rapid.Uint64Range(0, 300).Draw(t, "offered")}
			room := rapid.Uint64Range(0, 4000).Draw(t, "room")
			need, ok := h.Announce(now, terms, 30_000, r, room)
			if !ok {
				most := terms.Need(30_000, r, room)
				if terms.Short(30_000, r) && most > 0 && (now-told >= pause || most >= 2*last) {
					t.Fatalf("at %d: keeps %d to itself, %d ms after %d", now, most, now-told, last)
				}
				continue
			}
			if now-told < pause && need < 2*last || need == 0 {
				t.Fatalf("at %d: tells %d, %d ms after %d", now, need, now-told, last)
			}
			told, last = now, need
		}
	})
}

// Where all donors know all spare rights, the transfers cover the need as far
// as these suffice, and each exceeds its part by less than one.
func TestTransfersCoverTheNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spares := rapid.SliceOfN(rapid.Uint64Range(0, 1<<60), 1, 8).Draw(t, "spares")
		need := amount(t, "need")
		var total uint64
		for _, s := range spares {
			total += s
		}
		given := new(big.Int)
		for _, s := range spares {
			n := Policy{}.Transfer(Region{Offered: 1}, Request{Need: need}, s, total-s)
			if n > s {
				t.Fatalf("gives %d of a spare of %d", n, s)
			}
			given.Add(given, whole(n))
		}
		if given.Cmp(whole(min(need, total))) < 0 {
			t.Fatalf("%d given where %d are needed and %d spare", given, need, total)
		}
		if given.Cmp(sum(need, uint64(len(spares)))) > 0 {
			t.Fatalf("%d given where %d are needed", given, need)
		}
	})
	busy, q := Region{Available: 100, Offered: 30}, Request{Rights: 4, Second: 10, Need: 80}
	if n := (Policy{Entity: true}).Transfer(busy, q, 90, 0); n != 22 {
		t.Errorf("a region with 3/4 of the traffic and 100 of 104 rights transfers %d and not 22", n)
	}
	if n := (Policy{}).Transfer(Region{}, Request{Need: math.MaxUint64}, math.MaxUint64, math.MaxUint64); n != math.MaxUint64 {
		t.Errorf("gift of extremes %d", n)
	}
}

// Collecting starts with the daemons with most rights, all that they can
// transfer, and collects at most the amount.
func TestCollectRichestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := make([]DonorState, rapid.IntRange(0, 8).Draw(t, "rows"))
		can, out := make([]uint64, len(rows)), make([]uint64, len(rows)+1)
		want, got, all := amount(t, "amount"), new(big.Int), new(big.Int)
		for i := range rows {
			rows[i] = drawOwn(t)
			can[i] = sat.Sub(rows[i].Rights, max(1, rows[i].Recent, rows[i].Second))
			all.Add(all, whole(can[i]))
		}
		collect(want, rows, out)
		for i := range rows {
			got.Add(got, whole(out[i]))
			for j := range rows {
				if out[i] < can[i] && out[j] > 0 && can[j] < can[i] {
					t.Fatalf("takes %d of %d and %d of %d", out[i], can[i], out[j], can[j])
				}
			}
			if out[i] > can[i] {
				t.Fatalf("takes %d of %d", out[i], can[i])
			}
		}
		if least := whole(want); got.Cmp(least) != 0 && (got.Cmp(all) != 0 || got.Cmp(least) > 0) {
			t.Fatalf("collects %d of %d, asked for %d", got, all, want)
		}
	})
}

// A split gives out all but the rest of the rounding, and no daemon more than
// its part.
func TestSplitByRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hits := amount(t, "gift")
		rates := make([]uint64, rapid.IntRange(0, 8).Draw(t, "rates"))
		var total uint64
		fits := true
		for i := range rates {
			rates[i] = amount(t, "rate")
			fits = fits && rates[i] <= math.MaxUint64/8
			total += rates[i]
		}
		out := make([]uint64, len(rates))
		rest := split(hits, rates, out)
		got, busy := whole(rest), false
		for i, n := range out {
			got.Add(got, whole(n))
			busy = busy || rates[i] > 0
			if fits && total > 0 && whole(n).Cmp(exact(whole(hits), whole(rates[i]), whole(total), false)) != 0 {
				t.Fatalf("rate %d of %d gets %d of %d", rates[i], total, n, hits)
			}
		}
		if got.Cmp(whole(hits)) != 0 {
			t.Fatalf("%d came, %d were handed on or kept", hits, got)
		}
		if busy && rest >= uint64(len(rates)) || !busy && rest != hits {
			t.Fatalf("keeps %d of %d", rest, hits)
		}
	})
}

// Each broken policy breaks the law that forbids it.
func TestLawsFindBrokenPolicies(t *testing.T) {
	silent, busy := DonorState{Rights: 9}, DonorState{Rights: 9, Recent: 2, Second: 2}
	open := Policy{WindowMS: 60_000, DelayMS: 80}
	cold := Region{Allotment: 800, Available: 800}
	for name, err := range map[string]error{
		"gives more than it has":      giveLaw(busy, Request{0, 1, 0}, true, 10),
		"silent donor gives all":      giveLaw(silent, Request{1, 1, 0}, true, 9),
		"second last call at once":    giveLaw(DonorState{Rights: 1}, Request{0, 1, 0}, false, 1),
		"ignores its own traffic":     giveLaw(busy, Request{0, 1, 0}, true, 8),
		"gives half":                  giveLaw(busy, Request{8, 1, 0}, true, 4),
		"gives crumbs":                giveLaw(DonorState{90, 1, 1}, Request{90, 1, 0}, true, 1),
		"spares under the floor":      spareLaw(open, 60_000, cold, 501),
		"spares what it will need":    spareLaw(open, 60_000, Region{800, 800, 1000}, 200),
		"keeps more than floor":       spareLaw(open, 60_000, cold, 499),
		"gives where it is too late":  spareLaw(Policy{WindowMS: 600, DelayMS: 80}, 600, cold, 1),
		"a silent daemon asks":        askLaw(Need{Limit: 9}, 1, nil),
		"asks above the limit":        askLaw(Need{Recent: 1, Limit: 9, Estimate: 9}, 1, nil),
		"asks for what it has":        askLaw(Need{Entity: true, Recent: 1, Ahead: 2, Rights: 2, Held: 4, Limit: 9}, 1, nil),
		"gives more than is needed":   giveLaw(silent, Request{0, 1, 3}, true, 4),
		"asks with plenty":            askLaw(Need{Recent: 1, Rights: 2, Held: 2, Limit: 9}, 1, nil),
		"asks who has only his last":  askLaw(Need{Recent: 2, Rights: 1, Limit: 9}, 1, []Peer{{ID: 1, Held: 1}}),
		"aggregate asks at its half":  askLaw(Need{Recent: 1, Rights: 4, Held: 8, Limit: 9}, 1, nil),
		"asks a sibling that is none": askLaw(Need{Recent: 1, Limit: 9}, 0, nil),
	} {
		if err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}
