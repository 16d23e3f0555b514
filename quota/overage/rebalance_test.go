package overage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// proposer is one period of a fresh rebalancer, for the laws.
type proposer func(cfg RebalanceConfig, demand []uint64, current []rules.PPM) []rules.PPM

// ours is the proposer under test.
func ours(cfg RebalanceConfig, demand []uint64, current []rules.PPM) []rules.PPM {
	r, err := NewRebalancer(cfg)
	if err != nil {
		panic(err)
	}
	next, err := r.Propose(demand, current)
	if err != nil {
		panic(err)
	}
	return next
}

// checkProposal holds one proposal to the laws: exact sum, pins as set, the
// floor of equal shares, a bounded step.
func checkProposal(cfg RebalanceConfig, current, next []rules.PPM) error {
	if next == nil {
		return nil
	}
	sum, rest, free := uint64(0), uint64(whole), uint64(len(next))
	pinned := make(map[int]bool)
	repinned := false
	for _, p := range cfg.Pins {
		pinned[p.Region] = true
		rest -= uint64(p.Share)
		free--
		repinned = repinned || current[p.Region] != p.Share
		if next[p.Region] != p.Share {
			return fmt.Errorf("region %d has %d, pinned to %d", p.Region, next[p.Region], p.Share)
		}
	}
	moved := uint64(0)
	for i, w := range next {
		sum += uint64(w)
		moved += uint64(max(w, current[i]) - min(w, current[i]))
		floor := uint64(0)
		if free > 0 {
			floor = rest * uint64(cfg.Equal) / whole / free
		}
		had := uint64(current[i]) >= floor
		if !pinned[i] && had && !repinned && uint64(w)+2 < floor { // 2: rounded twice.
			return fmt.Errorf("region %d has %d, less than its floor of %d", i, w, floor)
		}
	}
	switch {
	case sum != whole:
		return fmt.Errorf("weights sum to %d, want %d", sum, whole)
	case !repinned && moved/2 > uint64(cfg.Step):
		return fmt.Errorf("%d change hands, the step is %d", moved/2, cfg.Step)
	case slices.Equal(current, next):
		return errors.New("an epoch that changes nothing")
	}
	return nil
}

// someConfig draws a configuration, with pins in half of the cases.
func someConfig(n func(lo, hi int) int) RebalanceConfig {
	cfg := RebalanceConfig{
		Regions: n(1, 8), Alpha: rules.PPM(n(100_000, whole)), Equal: rules.PPM(n(0, whole)),
		Hysteresis: rules.PPM(n(0, 300_000)), Step: rules.PPM(n(percent, whole)),
	}
	left := whole - 1
	for i := range n(0, 1) * n(0, cfg.Regions-1) {
		share := n(0, left)
		left -= share
		cfg.Pins = append(cfg.Pins, Pin{i, rules.PPM(share)})
	}
	return cfg
}

// someDemand draws demand that is often 0 and sometimes huge.
func someDemand(n func(lo, hi int) int, regions int) []uint64 {
	demand := make([]uint64, regions)
	for i := range demand {
		demand[i] = uint64(n(0, 1)) * uint64(n(0, 10_000)) << (n(0, 3) * n(0, 14))
	}
	return demand
}

// someWeights draws weights that sum to a million, at the floor or above.
func someWeights(n func(lo, hi int) int, regions int) []rules.PPM {
	raw := make([]uint64, regions)
	for i := range raw {
		raw[i] = uint64(n(0, 1000))
	}
	return toPPM(apportion(whole, raw))
}

func TestProposals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, "n") }
		cfg := someConfig(n)
		demand, current := someDemand(n, cfg.Regions), someWeights(n, cfg.Regions)
		next := ours(cfg, demand, current)
		if err := checkProposal(cfg, current, next); err != nil {
			t.Fatal(err)
		}
		if again := ours(cfg, demand, current); !slices.Equal(next, again) {
			t.Fatalf("twice the same question: %v and %v", next, again)
		}
	})
}

// TestProposalsMutations shows that the laws detect mutations.
func TestProposalsMutations(t *testing.T) {
	unpinned := func(cfg RebalanceConfig) RebalanceConfig { cfg.Pins = nil; return cfg }
	for _, mutation := range []struct {
		name    string
		propose proposer
		caught  bool
	}{
		{"ours", ours, false},
		{"shares rounded down", func(cfg RebalanceConfig, d []uint64, c []rules.PPM) []rules.PPM {
			next := ours(cfg, d, c)
			for i := range next {
				next[i] = next[i] / 7 * 7
			}
			return next
		}, true},
		{"pins forgotten", func(cfg RebalanceConfig, d []uint64, c []rules.PPM) []rules.PPM { return ours(unpinned(cfg), d, c) }, true},
		{"no floor", func(cfg RebalanceConfig, d []uint64, c []rules.PPM) []rules.PPM {
			cfg.Equal = 0
			return ours(cfg, d, c)
		}, true},
		{"no bound of the step", func(cfg RebalanceConfig, d []uint64, c []rules.PPM) []rules.PPM {
			cfg.Step = whole
			return ours(cfg, d, c)
		}, true},
		{"always an epoch", func(cfg RebalanceConfig, d []uint64, c []rules.PPM) []rules.PPM {
			if next := ours(cfg, d, c); next != nil {
				return next
			}
			return c
		}, true},
	} {
		caught := 0
		rng := rand.New(rand.NewPCG(1, 2))
		n := func(lo, hi int) int { return lo + rng.IntN(hi-lo+1) }
		const cases = 2000
		for range cases {
			cfg := someConfig(n)
			demand, current := someDemand(n, cfg.Regions), someWeights(n, cfg.Regions)
			if checkProposal(cfg, current, mutation.propose(cfg, demand, current)) != nil {
				caught++
			}
		}
		if (caught > 0) != mutation.caught {
			t.Errorf("%s: caught in %d cases", mutation.name, caught)
		}
	}
}

// TestConvergence: steady demand leads to its target in a few epochs, and then
// to none.
func TestConvergence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, "n") }
		cfg := DefaultRebalance(n(2, 6))
		cfg.Alpha, cfg.Evidence = rules.PPM(n(200_000, whole)), 0
		demand, current := someDemand(n, cfg.Regions), someWeights(n, cfg.Regions)
		r, err := NewRebalancer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		const periods = 200
		last, epochs := 0, 0
		for k := range periods {
			next, err := r.Propose(demand, current)
			if err != nil {
				t.Fatal(err)
			}
			if next != nil {
				current, last = next, k
				epochs++
			}
		}
		if last > periods-50 || epochs > 40 {
			t.Fatalf("%d epochs, the last in period %d: %v, target %v", epochs, last, current, r.Target())
		}
		total := uint64(0)
		for _, d := range demand {
			total += d
		}
		for i, w := range current {
			want := float64(demand[i])/float64(max(total, 1))*0.85 + 0.15/float64(cfg.Regions)
			if total > 0 && !near(float64(w)/whole, want, 1/(1-0.026), 3e-6) {
				t.Fatalf("region %d ends at %v, want %.4f", i, w, want)
			}
		}
	})
}

// TestNoise: demand that only trembles makes no epochs, demand that moves
// makes some.
func TestNoise(t *testing.T) {
	epochs := func(rate func(period int) []float64) int {
		rng := rand.New(rand.NewPCG(3, 3))
		r, _ := NewRebalancer(DefaultRebalance(3))
		current, count := r.Target(), 0
		for k := range 1000 {
			demand := make([]uint64, 3)
			for i, x := range rate(k) {
				demand[i] = poisson(rng, x)
			}
			if next, _ := r.Propose(demand, current); next != nil {
				current = next
				count++
			}
		}
		return count
	}
	few := epochs(func(int) []float64 { return []float64{6, 3, 1} })
	still := epochs(func(int) []float64 { return []float64{3600, 1800, 600} })
	moving := epochs(func(k int) []float64 {
		rates := []float64{600, 600, 600}
		rates[k/100%3] = 4800
		return rates
	})
	if still > 10 || few > 10 {
		t.Errorf("steady demand made %d and %d epochs, want at most 10", still, few)
	}
	if moving < 18 || moving > 120 {
		t.Errorf("moving demand made %d epochs in 9 moves, want 18 to 120", moving)
	}
}

// TestProposeCases are the cases a reader asks for.
func TestProposeCases(t *testing.T) {
	all := DefaultRebalance(3)
	all.Alpha, all.Evidence = whole, 0
	third := []rules.PPM{333_334, 333_333, 333_333}
	pinned := all
	pinned.Pins = []Pin{{0, 500_000}}
	for _, c := range []struct {
		name    string
		cfg     RebalanceConfig
		demand  []uint64
		current []rules.PPM
		want    []rules.PPM
	}{
		{"balanced", all, []uint64{5, 5, 5}, third, nil},
		{"no demand", all, []uint64{0, 0, 0}, []rules.PPM{600_000, 200_000, 200_000}, nil},
		{"below the hysteresis", all, []uint64{105, 100, 100}, third, nil},
		{"to the target", all, []uint64{50, 30, 20}, third, []rules.PPM{475_000, 305_000, 220_000}},
		{"a step only", all, []uint64{1, 0, 0}, third, []rules.PPM{583_331, 208_335, 208_334}},
		{"ties to the first", all, []uint64{7, 7, 7}, []rules.PPM{500_000, 300_000, 200_000}, third},
		{"pinned at once", pinned, []uint64{0, 0, 0}, third, []rules.PPM{500_000, 250_000, 250_000}},
		{"pinned stays", pinned, []uint64{9, 3, 1}, []rules.PPM{500_000, 250_000, 250_000}, []rules.PPM{500_000, 356_250, 143_750}},
	} {
		got := ours(c.cfg, c.demand, c.current)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRebalanceRefusals(t *testing.T) {
	good := DefaultRebalance(3)
	for want, change := range map[string]func(*RebalanceConfig){
		"weights for 0 regions, want 1 to 64":               func(c *RebalanceConfig) { c.Regions = 0 },
		"a weight is pinned for region 3, want 0 to 2":      func(c *RebalanceConfig) { c.Pins = []Pin{{3, 1}} },
		"the weight of region 1 is pinned twice, want once": func(c *RebalanceConfig) { c.Pins = []Pin{{1, 1}, {1, 1}} },
		"pinned weights sum to 110%, want at most 100%":     func(c *RebalanceConfig) { c.Pins = []Pin{{0, 600_000}, {1, 500_000}} },
		"the weights of all regions are pinned and sum to 3%, want 100%": func(c *RebalanceConfig) {
			c.Pins = []Pin{{0, percent}, {1, percent}, {2, percent}}
		},
		"pinned weights sum to 100%, which leaves nothing for 2 other regions: pin these to 0% or the others to less": func(c *RebalanceConfig) {
			c.Pins = []Pin{{0, whole}}
		},
	} {
		cfg := good
		change(&cfg)
		if _, err := NewRebalancer(cfg); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	r, err := NewRebalancer(good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Propose([]uint64{1}, []rules.PPM{whole}); err == nil {
		t.Error("demand of one region of three was taken")
	}
}

func BenchmarkPropose(b *testing.B) {
	r, _ := NewRebalancer(DefaultRebalance(3))
	demand, current := []uint64{3600, 1800, 600}, []rules.PPM{333_334, 333_333, 333_333}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Propose(demand, current); err != nil {
			b.Fatal(err)
		}
	}
}
