package overage

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// someHistory draws a history of a rule. Weights are known in half of the
// windows.
func someHistory(n func(lo, hi int) int) (*History, Rule) {
	regions := n(1, 5)
	r := Rule{
		Name: "r", Limit: uint64(n(1, 5000)), WindowMs: int64(n(1, 100)) * 1000, HasBudget: n(0, 1) == 1,
		Regions: regionNames(regions), Mode: Mode(n(0, 1)),
	}
	r.Budget = rules.PPM(n(0, (regions-1)*whole))
	h := NewHistory(regions, n(1, 20))
	for i := range regions {
		for j := range regions {
			if i != j {
				age := int64(n(0, 2000))
				h.SetLink(i, j, Link{AgeP50Ms: age / 2, AgeP99Ms: age, AgeMaxMs: 2 * age, AgeNowMs: int64(n(0, 9000)), RTTMs: int64(n(0, 5000))})
			}
		}
	}
	for k := range n(0, 25) {
		w := Window{
			StartMs: int64(k/2) * r.WindowMs, Limit: r.Limit, AgeMs: int64(n(1, 2000)), RTTMs: int64(n(1, 5000)), Crossed: n(0, 1) == 1,
			Gated: n(0, 1) == 1, Budget: r.Budget, Regions: make([]Traffic, regions),
		}
		weights := someWeights(n, regions)
		known := n(0, 1) == 1
		for i := range w.Regions {
			x := &w.Regions[i]
			x.Admitted = uint64(n(0, 1) * n(0, int(r.Limit)))
			x.DeniedRights = uint64(n(0, 1) * n(0, int(r.Limit)))
			x.DeniedEstimate = uint64(n(0, 1) * n(0, 10*int(r.Limit)))
			x.Stranded = uint64(n(0, int(x.DeniedRights)))
			all := int(x.Demand())
			x.PeakAge.Max, x.SurgeRTT, x.AtCrossing = uint64(n(0, all)), uint64(n(0, all)), uint64(n(0, all))
			if known {
				x.Weight = weights[i]
			}
		}
		must(h.Add(w))
	}
	return h, r
}

func must(ok bool) {
	if !ok {
		panic("a window is not consistent")
	}
}

// TestFalseDenialsFall: a larger budget never denies more.
func TestFalseDenialsFall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, "n") }
		h, r := someHistory(n)
		p := newReplay(h, &r)
		static, transferred := 1.0, 1.0
		for k := range steps(len(r.Regions)) + 1 {
			s, d := p.falseDenials(step(k))
			if s > static || d > transferred || d > s || d < 0 {
				t.Fatalf("at %v: %g and with transfers %g, before %g and %g", step(k), s, d, static, transferred)
			}
			static, transferred = s, d
		}
	})
}

// TestSharesGrowWithTheBudget: no region loses by a larger budget. The mutated
// variant splits by largest remainder, where a region may (the Alabama
// paradox); this is why a replay rounds shares down.
func TestSharesGrowWithTheBudget(t *testing.T) {
	for _, mutation := range []struct {
		name   string
		split  func(all uint64, weights []rules.PPM) []uint64
		caught bool
	}{
		{"rounded down", func(all uint64, weights []rules.PPM) []uint64 {
			parts := make([]uint64, len(weights))
			for i, w := range weights {
				parts[i] = share(all, w)
			}
			return parts
		}, false},
		{"largest remainder", func(all uint64, weights []rules.PPM) []uint64 {
			raw := make([]uint64, len(weights))
			for i, w := range weights {
				raw[i] = uint64(w)
			}
			return apportion(all, raw)
		}, true},
	} {
		rng := rand.New(rand.NewPCG(5, 5))
		n := func(lo, hi int) int { return lo + rng.IntN(hi-lo+1) }
		caught := 0
		for range 300 {
			weights := someWeights(n, n(3, 5))
			before := make([]uint64, len(weights))
			lost := false
			for all := range uint64(60) {
				parts := mutation.split(all, weights)
				sum := uint64(0)
				for i, part := range parts {
					lost = lost || part < before[i]
					sum += part
				}
				if sum > all {
					t.Fatalf("%s: %v of %d is %v", mutation.name, weights, all, parts)
				}
				before = parts
			}
			if lost {
				caught++
			}
		}
		if (caught > 0) != mutation.caught {
			t.Errorf("%s: caught in %d cases", mutation.name, caught)
		}
	}
}

// checkSmallest checks the result of a search.
func checkSmallest(p *replay, regions int, target rules.PPM, transfers bool, got rules.PPM, ok bool) error {
	denied := func(b rules.PPM) float64 {
		static, transferred := p.falseDenials(b)
		if transfers {
			return transferred
		}
		return static
	}
	if !ok {
		if d := denied(rules.PPM(regions-1) * whole); d <= target.Ratio() {
			return fmt.Errorf("no budget for %v, but the greatest denies only %g", target, d)
		}
		return nil
	}
	if d := denied(got); d > target.Ratio() {
		return fmt.Errorf("%v denies %g, the target is %v", got, d, target)
	}
	for k := 1; k <= steps(regions); k++ {
		if step(k) == got && denied(step(k-1)) <= target.Ratio() {
			return fmt.Errorf("%v is not the smallest: %v meets %v too", got, step(k-1), target)
		}
	}
	return nil
}

func TestSmallest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, "n") }
		h, r := someHistory(n)
		p := newReplay(h, &r)
		target, transfers := rules.PPM(n(0, 1)*n(0, whole)), n(0, 1) == 1
		got, ok := p.smallest(h.regions, target, transfers)
		if err := checkSmallest(&p, h.regions, target, transfers, got, ok); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSmallestMutations shows that the promise is worth checking.
func TestSmallestMutations(t *testing.T) {
	type search func(p *replay, regions int, target rules.PPM) (rules.PPM, bool)
	ours := func(p *replay, regions int, target rules.PPM) (rules.PPM, bool) {
		return p.smallest(regions, target, false)
	}
	for _, mutation := range []struct {
		name   string
		search search
		caught bool
	}{
		{"ours", ours, false},
		{"a step less", func(p *replay, regions int, target rules.PPM) (rules.PPM, bool) {
			b, ok := ours(p, regions, target)
			return b - min(b, fineStep), ok
		}, true},
		{"a step more", func(p *replay, regions int, target rules.PPM) (rules.PPM, bool) {
			b, ok := ours(p, regions, target)
			for k := range steps(regions) {
				if step(k) == b {
					return step(k + 1), ok
				}
			}
			return b, ok
		}, true},
		{"gives up", func(p *replay, regions int, target rules.PPM) (rules.PPM, bool) { return 0, false }, true},
		{"by transfers that never come", func(p *replay, regions int, target rules.PPM) (rules.PPM, bool) {
			return p.smallest(regions, target, true)
		}, true},
	} {
		rng := rand.New(rand.NewPCG(6, 6))
		n := func(lo, hi int) int { return lo + rng.IntN(hi-lo+1) }
		caught := 0
		for range 300 {
			h, r := someHistory(n)
			p := newReplay(h, &r)
			target := rules.PPM(n(0, 100_000))
			got, ok := mutation.search(&p, h.regions, target)
			if checkSmallest(&p, h.regions, target, false, got, ok) != nil {
				caught++
			}
		}
		if (caught > 0) != mutation.caught {
			t.Errorf("%s: caught in %d cases", mutation.name, caught)
		}
	}
}

// TestReplayByHand follows one window on paper: L = 100, weights 60, 30 and
// 10 %, demand 40, 50 and 5.
func TestReplayByHand(t *testing.T) {
	x := replayed{limit: 100, demand: []uint64{40, 50, 5}, surge: []uint64{9, 8, 7}, weights: []rules.PPM{600_000, 300_000, 100_000}}
	for _, c := range []struct {
		b                   rules.PPM
		static, transferred uint64
	}{
		{0, 20, 8},            // The second has 30 of 50.
		{10 * percent, 17, 8}, // 33 of 50.
		{50 * percent, 5, 5},  // 45 of 50: less than a surge.
		{67 * percent, 0, 0},  // 50.1.
		{200 * percent, 0, 0}, // As much as three regions can have.
		{66 * percent, 1, 1},  // 49.8, rounded down.
	} {
		if s, d := x.missing(c.b); s != c.static || d != c.transferred {
			t.Errorf("at %v: %d and %d are missing, want %d and %d", c.b, s, d, c.static, c.transferred)
		}
	}
	x.demand = []uint64{90, 50, 5} // Over the limit: 45 of it nobody was promised.
	if s, _ := x.missing(0); s != 100-60-30-5 {
		t.Errorf("beyond the limit %d are missing, want 5", s)
	}
}

func TestSteps(t *testing.T) {
	if got := []rules.PPM{step(0), step(1), step(20), step(21), step(steps(3))}; fmt.Sprint(got) != "[0% 0.1% 2% 3% 200%]" {
		t.Errorf("steps are %v", got)
	}
	if steps(1) != 0 {
		t.Errorf("one region has %d steps, want 0", steps(1))
	}
}
