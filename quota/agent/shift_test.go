package agent

import (
	"testing"
	"time"

	"github.com/georld/rld/rules"
)

// byRegion is demand that a test changes while time passes.
func byRegion(shares map[string]uint64) func(p *proc, rule uint64) uint64 {
	return func(p *proc, rule uint64) uint64 { return shares[p.region] }
}

// TestCutRegion: a partitioned region keeps its share meanwhile, no share
// moves, and after the heal the shares reach their target within a period and
// two seconds.
func TestCutRegion(t *testing.T) {
	r := newRig(t, 1, 2, 2, 2)
	shares := map[string]uint64{"a": 1000, "b": 1000, "c": 1000}
	r.demand = byRegion(shares)
	r.boot()
	r.run(30 * time.Second)
	r.cut = func(from, to *proc) bool { return from.region != to.region && (from.region == "c" || to.region == "c") }
	shares["a"], shares["c"] = 3000, 200
	r.run(60 * time.Second)
	r.safe()
	if got := r.base(r.find("c1"), 0); got < 1600 {
		t.Errorf("c1 holds %d while cut off: want a sixth", got)
	}
	if !r.whole() {
		t.Errorf("%d of %d while a region is cut off", r.held(0), r.asked[0].total)
	}
	r.cut = nil
	// 0.85 of the demand share and 0.15 in equal parts; a quarter of the
	// rights moves in one step.
	r.until(12*time.Second+200*time.Millisecond, "the first step", func() bool {
		return r.base(r.find("a1"), 0) > 10_007*55/100/2 && r.whole()
	})
	r.safe()
}

// TestLongWindow: a long window keeps its initial rights, although the demand
// moves and its epochs are pruned.
func TestLongWindow(t *testing.T) {
	r := newRig(t, 1, 1, 1, 1)
	shares := map[string]uint64{"a": 1000, "b": 1000, "c": 1000}
	r.demand = byRegion(shares)
	r.rules = append(r.rules, Rule{ID: 14, Lookback: time.Hour})
	r.boot()
	r.run(5 * time.Second)
	x := dawn + r.at.Milliseconds() - 1000
	a := r.find("a1")
	was, _ := a.Allotment(14, 100_000, x, 0, false)
	late := r.find("b1") // reads its allotment of the window only later
	for i := range 16 {
		shares["a"], shares["b"], shares["c"] = 100, 100, 100
		shares[string(rune('a'+i%3))] = 5000
		r.run(20 * time.Second)
	}
	if n := a.Agent.region.Len(); n > keptEpochs+2 {
		t.Errorf("%d epochs are kept", n)
	}
	if base, why := a.Allotment(14, 100_000, x, 0, false); base != was || base < 33_000 {
		t.Errorf("%d (%v) of the label that began with %d", base, why, was)
	}
	if base, why := late.Allotment(14, 100_000, x, 0, false); base == 0 || base > 34_000 {
		t.Errorf("%d (%v) of the label asked for late", base, why)
	}
	r.safe()
}

// TestPins: weights that an operator sets apply at once, and demand does not
// change them.
func TestPins(t *testing.T) {
	r := newRig(t, 1, 1, 1, 1)
	r.demand = byRegion(map[string]uint64{"a": 100, "b": 5000, "c": 100})
	r.boot()
	r.run(3 * time.Second)
	r.rules[0].Pins = []rules.Weight{{Region: "a", Share: 700_000}}
	for _, p := range r.daemons {
		p.Rules(r.rules)
	}
	r.until(2*time.Second, "pinned", func() bool { return r.base(r.find("a1"), 0) == 7004 && r.whole() })
	r.run(100 * time.Second)
	if got := r.base(r.find("a1"), 0); got != 7004 {
		t.Errorf("a1 holds %d, want what is pinned", got)
	}
	if got := r.base(r.find("b1"), 0); got < 2000 {
		t.Errorf("b1 holds %d, want most of the rest", got)
	}
	r.safe()
}

// TestUnfitPins: pins that leave nothing to others are reported and ignored.
func TestUnfitPins(t *testing.T) {
	r := newRig(t, 1, 1, 1, 1)
	r.rules[0].Pins = []rules.Weight{{Region: "a", Share: 1_000_000}, {Region: "b", Share: 1}}
	r.boot()
	r.run(15 * time.Second)
	found := false
	for _, e := range r.find("a1").events {
		found = found || e.Kind == PinsUnfit
	}
	if !found || !r.whole() {
		t.Errorf("said: %v; %d held", found, r.held(0))
	}
}
