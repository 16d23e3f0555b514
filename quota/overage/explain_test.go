package overage

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/georld/rld/rules"
)

// scene is a rule with a history of equal windows.
type scene struct {
	rule    Rule
	windows int
	demand  []uint64 // a window, by region
	denied  []uint64 // part of it denied by the rights gate
	peak    []uint64 // in any interval of the view age
	weights []rules.PPM
	age     int64
	rtt     int64
}

func (s scene) history(t *testing.T) *History {
	t.Helper()
	n := len(s.rule.Regions)
	h := NewHistory(n, 240)
	for i := range n {
		for j := range n {
			if i != j {
				h.SetLink(i, j, Link{AgeP50Ms: s.age * 6 / 10, AgeP99Ms: s.age, AgeMaxMs: s.age, AgeNowMs: s.age / 2, RTTMs: s.rtt})
			}
		}
	}
	total := uint64(0)
	for _, d := range s.demand {
		total += d
	}
	b, gated := s.rule.gated()
	for k := range s.windows {
		w := Window{
			StartMs: int64(k) * s.rule.WindowMs, Limit: s.rule.Limit, AgeMs: s.age, RTTMs: s.rtt, Gated: gated, Budget: b,
			Crossed: total > s.rule.Limit, Regions: make([]Traffic, n),
		}
		left := s.rule.Limit
		for i := range w.Regions {
			x := &w.Regions[i]
			if s.denied != nil {
				x.DeniedRights = s.denied[i]
			}
			x.Admitted = min(s.demand[i]-x.DeniedRights, left)
			left -= x.Admitted
			x.DeniedEstimate = s.demand[i] - x.DeniedRights - x.Admitted
			x.PeakAge = Peaks{Max: s.peak[i]}
			x.SurgeRTT = s.peak[i] / 4
			x.AtCrossing = s.peak[i]
			if s.weights != nil {
				x.Weight = s.weights[i]
			}
		}
		if !h.Add(w) {
			t.Fatalf("a window is not consistent: %+v", w)
		}
	}
	return h
}

// org is an aggregate key at 0.9 of its limit, 60 : 30 : 10 over the regions.
func org() scene {
	return scene{
		rule: Rule{
			Name: "edge: org", Limit: 6000, WindowMs: 60_000, HasBudget: true, Budget: 10 * percent,
			Regions: regionNames(3),
		},
		windows: 240, demand: []uint64{3240, 1620, 540}, peak: []uint64{40, 22, 9},
		weights: []rules.PPM{560_000, 305_000, 135_000}, age: 530, rtt: 160,
	}
}

// scenes are the cases of the golden file.
var scenes = []struct {
	name   string
	change func(s *scene)
}{
	{"a budget with room", func(*scene) {}},
	{"a budget that is too small", func(s *scene) {
		s.demand, s.denied, s.peak = []uint64{540, 4320, 540}, []uint64{0, 2300, 0}, []uint64{9, 60, 9}
	}},
	{"shares alone would be wrong, but transfers help", func(s *scene) {
		s.demand, s.denied, s.peak = []uint64{540, 4320, 540}, []uint64{0, 1, 0}, []uint64{9, 40, 9}
	}},
	{"rights that are not where they are needed", func(s *scene) { s.denied = []uint64{300, 0, 0} }},
	{"no budget, over the limit", func(s *scene) {
		s.rule.HasBudget, s.weights, s.demand = false, nil, []uint64{5400, 2700, 900}
	}},
	{"partition", func(s *scene) { s.rule.Mode, s.rule.HasBudget = Partition, false }},
	{"a budget, but for failures", func(s *scene) { s.rule.Open = true }},
	{"strict", func(s *scene) { s.rule.Mode, s.rule.HasBudget, s.weights = Strict, false, nil }},
	{"strict, but for failures", func(s *scene) {
		s.rule.Mode, s.rule.Open, s.rule.HasBudget, s.weights = Strict, true, false, nil
	}},
	{"one key a user, without a budget", func(s *scene) {
		s.rule.Name, s.rule.HasBudget, s.weights = "edge: user", false, nil
	}},
	{"a few hits", func(s *scene) {
		s.rule.Name, s.rule.Limit, s.demand, s.peak = "edge: /login", 5, []uint64{4, 0, 0}, []uint64{2, 0, 0}
	}},
	{"one region's rule", func(s *scene) {
		s.demand, s.peak, s.denied = []uint64{60, 5280, 60}, []uint64{2, 120, 2}, []uint64{0, 900, 0}
	}},
	{"no budget is enough", func(s *scene) {
		s.rule.Pins = []Pin{{1, 20_000}}
		s.weights = []rules.PPM{800_000, 20_000, 180_000}
		s.demand, s.peak, s.denied = []uint64{2400, 2400, 600}, []uint64{50, 50, 7}, []uint64{0, 2200, 0}
		s.rule.WindowMs = 1000
	}},
	{"one region", func(s *scene) {
		s.rule.Regions, s.rule.Budget, s.weights = s.rule.Regions[:1], 0, nil
		s.demand, s.peak = s.demand[:1], s.peak[:1]
	}},
	{"one region without a budget", func(s *scene) {
		s.rule.Regions, s.rule.HasBudget, s.weights = s.rule.Regions[:1], false, nil
		s.demand, s.peak = s.demand[:1], s.peak[:1]
	}},
	{"one region with a budget", func(s *scene) {
		s.rule.Regions, s.rule.Budget, s.weights = s.rule.Regions[:1], 100_000, nil
		s.demand, s.peak = s.demand[:1], s.peak[:1]
	}},
	{"nothing was seen", func(s *scene) { s.windows = 0 }},
}

var rewrite = flag.Bool("rewrite", false, "write testdata/explain.txt anew")

// TestExplain holds what people read to the golden file. After a change of
// text run it with -rewrite, and read the difference.
func TestExplain(t *testing.T) {
	const golden = "testdata/explain.txt"
	var b strings.Builder
	for _, c := range scenes {
		s := org()
		c.change(&s)
		h := s.history(t)
		p, err := h.Report(s.rule, DefaultTarget)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "# %s\n", c.name)
		for _, sentence := range Explain(p) {
			fmt.Fprintf(&b, "  %s\n", sentence)
		}
		fmt.Fprintf(&b, "  recommended: %v. %s\n", p.Recommended, p.Reason)
		a, err := Advise(h, s.rule, DefaultTarget)
		if err != nil {
			fmt.Fprintf(&b, "  error: %v\n\n", err)
			continue
		}
		fmt.Fprintf(&b, "  | %s\n  %s\n\n", strings.ReplaceAll(a.YAML, "\n", "\n  | "), a.Text)
	}
	if *rewrite {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("the text changed; if it should, run go test -run TestExplain ./quota/budget -args -rewrite\n%s", got)
	}
}

// TestAdviseBeforeTraffic: there is an error that a caller can distinguish.
func TestAdviseBeforeTraffic(t *testing.T) {
	s := org()
	s.windows = 0
	if _, err := Advise(s.history(t), s.rule, DefaultTarget); !errors.Is(err, ErrNoTraffic) {
		t.Errorf("got %v, want %v", err, ErrNoTraffic)
	}
}
