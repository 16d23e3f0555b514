package overage

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// TestReportByHand follows two windows on paper.
func TestReportByHand(t *testing.T) {
	h := NewHistory(2, 4)
	h.SetLink(0, 1, Link{AgeP50Ms: 300, AgeP99Ms: 500, AgeMaxMs: 1000, AgeNowMs: 400, RTTMs: 100})
	h.SetLink(1, 0, Link{AgeP50Ms: 250, AgeP99Ms: 500, AgeMaxMs: 900, AgeNowMs: 2000, RTTMs: 120})
	must(h.Add(Window{StartMs: 0, Limit: 100, AgeMs: 500, RTTMs: 120, Regions: []Traffic{
		{Admitted: 50, PeakAge: Peaks{Max: 10}, Weight: 500_000},
		{Admitted: 30, DeniedRights: 10, Stranded: 4, PeakAge: Peaks{Max: 8}, Weight: 500_000},
	}, Gated: true, Budget: 10 * percent}))
	must(h.Add(Window{StartMs: 10_000, Limit: 100, AgeMs: 500, RTTMs: 120, Crossed: true, Regions: []Traffic{
		{Admitted: 60, DeniedEstimate: 40, PeakAge: Peaks{Max: 9}, AtCrossing: 6, Weight: 500_000},
		{Admitted: 45, DeniedRights: 15, Stranded: 3, PeakAge: Peaks{Max: 15}, AtCrossing: 10, Weight: 500_000},
	}, Gated: true, Budget: 10 * percent}))
	r := Rule{Name: "r", Limit: 100, WindowMs: 10_000, HasBudget: true, Budget: 10 * percent, Regions: []string{"a", "b"}}
	p, err := h.Report(r, DefaultTarget)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"bound", p.Bound.Hits, 10},
		{"worst naive", p.WorstNaive.Hits, 30}, // b's peak, twice: 1000 ms are two intervals.
		{"predicted", p.Predicted.Hits, 6},     // a's view of b: 10 x 300/500. b's of a: 3.
		{"predicted now", p.PredictedNow.Hits, 24},
		{"crossings", float64(p.Crossings), 1},
		{"achieved worst", p.AchievedWorst.Hits, 5},
		{"headroom", p.Headroom, 1 - 105.0/110},
		{"gated", float64(p.Gated), 2},
		{"false denials", p.FalseDenials, 10.0 / 190}, // 90 and 100 could have passed; 10 of these were denied.
		{"static", p.Static, 0},                       // 55 a region: 40 + 50, and 55 + 55.
		{"dominant", p.DominantShare, 150.0 / 250},
		{"age", float64(p.AgeMs), 1000},
		{"round trip", float64(p.RTTMs), 120},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s is %g, want %g", c.name, c.got, c.want)
		}
	}
	if p.Dominant != 0 || !p.TransfersInTime || !p.Enough || !p.Bounded {
		t.Errorf("the report is %+v", p)
	}
}

// TestAlarms raises each alarm, and none when all is well.
func TestAlarms(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *Window, l *Link)
		want   []string
	}{
		{"all is well", func(*Window, *Link) {}, nil},
		{
			"over", func(w *Window, _ *Link) { w.Regions[0].Admitted = 80 },
			[]string{"8 hits more than the rights of 102 were admitted in a window: what was removed as stopped still runs, or this is a fault of rld to report"},
		},
		{"fast", func(w *Window, _ *Link) {
			w.Crossed, w.Regions[0].AtCrossing, w.Regions[0].DeniedEstimate = true, 20, 50
		}, []string{"counts alone would go 12% over the limit now, the budget is 2%: the rights of each region hold it"}},
		{
			"stranded", func(w *Window, _ *Link) { w.Regions[1].DeniedRights, w.Regions[1].Stranded = 9, 7 },
			[]string{"7 hits were denied for want of rights in the latest window while less than 90% of the limit was used"},
		},
		{
			"cut off", func(_ *Window, l *Link) { l.AgeNowMs = 65_000 },
			[]string{
				"a has received nothing from b for 65 s, usually 500 ms: its own rights still bound it",
				"b has received nothing from a for 65 s, usually 500 ms: its own rights still bound it",
			},
		},
	} {
		h := NewHistory(2, 4)
		l := Link{AgeP50Ms: 300, AgeP99Ms: 500, AgeMaxMs: 500, AgeNowMs: 300, RTTMs: 100}
		w := Window{Limit: 100, AgeMs: 500, RTTMs: 100, Gated: true, Budget: 2 * percent, Regions: []Traffic{{Admitted: 50}, {Admitted: 30}}}
		c.change(&w, &l)
		h.SetLink(0, 1, l)
		h.SetLink(1, 0, l)
		must(h.Add(w))
		p, err := h.Report(Rule{
			Name: "r", Limit: 100, WindowMs: 10_000, HasBudget: true, Budget: 2 * percent,
			Regions: []string{"a", "b"},
		}, DefaultTarget)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.Alarms, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(p.Alarms, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestReports: no history and no rule make a report that is not a number, out
// of range or silent, and advice holds on the history it came from.
func TestReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, "n") }
		h, r := someHistory(n)
		target := rules.PPM(n(0, 200_000))
		p, err := h.Report(r, target)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []float64{
			p.Bound.Ratio, p.WorstNaive.Ratio, p.Predicted.Ratio, p.PredictedNow.Ratio, p.AchievedWorst.Ratio,
			p.Headroom, p.FalseDenials, p.Static, p.Transferred, p.DominantShare, p.Least,
		} {
			if math.IsNaN(f) || f < 0 || f > 64 {
				t.Fatalf("a figure of %g in %+v", f, p)
			}
		}
		if most := float64(len(r.Regions) - 1); p.WorstNaive.Ratio > most {
			t.Fatalf("without a budget %+v at worst", p.WorstNaive)
		}
		for _, s := range Explain(p) {
			if len(s) < 20 || !strings.HasSuffix(s, ".") || strings.Contains(s, "NaN") || strings.Contains(s, "%!") {
				t.Fatalf("a sentence reads %q", s)
			}
		}
		a, err := Advise(h, r, target)
		if err != nil {
			if a != (Advice{}) {
				t.Fatalf("advice and an error: %+v, %v", a, err)
			}
			return
		}
		if a.FalseDenials > target.Ratio() || a.Predicted.Ratio > a.Bound.Ratio || !strings.Contains(a.YAML, "overage_budget: "+a.Budget.String()) {
			t.Fatalf("advice for %v is %+v", target, a)
		}
	})
}

// TestExtremes: the greatest counts neither overflow nor stop the reports.
func TestExtremes(t *testing.T) {
	h := NewHistory(MaxRegions, 2)
	w := Window{Limit: MaxLimit, AgeMs: 1, RTTMs: maxEnvelopeMs, Crossed: true, Gated: true, Budget: 63 * whole}
	for i := range MaxRegions {
		w.Regions = append(w.Regions, Traffic{
			Admitted: math.MaxUint64, DeniedRights: math.MaxUint64, DeniedEstimate: math.MaxUint64, Stranded: math.MaxUint64,
			PeakAge: Peaks{math.MaxUint64, math.MaxUint64}, SurgeRTT: math.MaxUint64,
			AtCrossing: math.MaxUint64,
		})
		for j := range MaxRegions {
			if i != j {
				h.SetLink(i, j, Link{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64})
			}
		}
	}
	for range 3 {
		must(h.Add(w))
	}
	r := Rule{Name: "r", Limit: MaxLimit, WindowMs: math.MaxInt64, HasBudget: true, Budget: 63 * whole, Regions: regionNames(MaxRegions)}
	p, err := h.Report(r, DefaultTarget)
	if err != nil {
		t.Fatal(err)
	}
	if p.WorstNaive.Ratio != 63 || math.IsNaN(p.FalseDenials) || len(p.Alarms) > maxAlarms+3 {
		t.Errorf("the report is %+v", p)
	}
	Explain(p)
	if _, err := Advise(h, r, 0); err != nil && !strings.Contains(err.Error(), "what would") {
		t.Error(err)
	}
}

// TestRing: a history keeps the last windows, and does not share memory.
func TestRing(t *testing.T) {
	h := NewHistory(1, 3)
	traffic := []Traffic{{}}
	for k := range 5 {
		traffic[0].Admitted = uint64(k)
		must(h.Add(Window{StartMs: int64(k), Limit: 10, AgeMs: 1, RTTMs: 1, Regions: traffic}))
	}
	traffic[0].Admitted = 99
	for k := range h.count {
		if got := h.at(k).Regions[0].Admitted; got != uint64(k+2) {
			t.Errorf("window %d holds %d, want %d", k, got, k+2)
		}
	}
}

func TestRefusals(t *testing.T) {
	good := Rule{Name: "r", Limit: 100, WindowMs: 1000, Regions: []string{"a", "b"}}
	for want, change := range map[string]func(*Rule){
		`rule "r" has 0 regions, want 1 to 64`:                    func(r *Rule) { r.Regions = nil },
		`rule "r" has a limit of 0 hits, want 1 to 68719476736`:   func(r *Rule) { r.Limit = 0 },
		`rule "r" has a window of 0 ms, want at least 1`:          func(r *Rule) { r.WindowMs = 0 },
		`rule "r" has mode 9, want eventual, partition or strict`: func(r *Rule) { r.Mode = 9 },
		`rule "r" names region "a" twice, want each once`:         func(r *Rule) { r.Regions = []string{"a", "a"} },
		`rule "r": a weight is pinned for region 2, want 0 to 1`:  func(r *Rule) { r.Pins = []Pin{{2, 1}} },
		`rule "r" has an overage budget of 100.5%, want 0% to 100%: 2 regions without any budget never exceed that`: func(r *Rule) {
			r.HasBudget, r.Budget = true, 100*percent+5000
		},
		`rule "r" has 3 regions, its history 2`: func(r *Rule) { r.Regions = []string{"a", "b", "c"} },
	} {
		h := NewHistory(2, 2)
		r := good
		change(&r)
		if _, err := h.Report(r, 0); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	h := NewHistory(2, 2)
	must(h.Add(Window{StartMs: 5, Limit: 9, AgeMs: 1, RTTMs: 1, Regions: make([]Traffic, 2)}))
	for name, change := range map[string]func(w *Window){
		"another number of regions":  func(w *Window) { w.Regions = w.Regions[:1] },
		"no limit":                   func(w *Window) { w.Limit = 0 },
		"a limit beyond the bound":   func(w *Window) { w.Limit = MaxLimit + 1 },
		"a budget beyond the bound":  func(w *Window) { w.Gated, w.Budget = true, MaxRegions*whole+1 },
		"no view age":                func(w *Window) { w.AgeMs = 0 },
		"a round trip of over a day": func(w *Window) { w.RTTMs = maxEnvelopeMs + 1 },
		"before the latest":          func(w *Window) { w.StartMs = 4 },
		"weights of another sum":     func(w *Window) { w.Regions[0].Weight = 7 },
		"stranded but not denied":    func(w *Window) { w.Regions[1] = Traffic{Stranded: 2, DeniedRights: 1} },
	} {
		w := Window{StartMs: 5, Limit: 9, AgeMs: 1, RTTMs: 1, Regions: make([]Traffic, 2)}
		change(&w)
		if h.Add(w) || h.count != 1 {
			t.Errorf("a window was added that is not consistent: %s", name)
		}
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{pct(0), "0%"},
		{pct(0.00001), "less than 0.01%"},
		{pct(0.00084), "0.08%"},
		{pct(0.0995), "9.95%"},
		{pct(0.10), "10%"},
		{pct(0.1234), "12.3%"},
		{pct(0.9999), "100%"},
		{pct(15.5), "1,550%"},
		{pct(2), "200%"},
		{grouped(6600), "6,600"},
		{grouped(999), "999"},
		{grouped(1234567), "1,234,567"},
		{length(530), "530 ms"},
		{length(1280), "1.28 s"},
		{length(60_000), "60 s"},
		{length(300_000), "5 min"},
		{length(86_400_000), "24 h"},
		{rules.PPM(70_000).String(), "7%"},
		{rules.PPM(1000).String(), "0.1%"},
		{rules.PPM(0).String(), "0%"},
		{rules.PPM(1_355_001).String(), "135.5001%"},
		{ceilPPM(0.0111).String(), "1.11%"},
		{ceilPPM(0.011101).String(), "1.12%"},
		{ceilPPM(0).String(), "0%"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func BenchmarkReport(b *testing.B) {
	h := NewHistory(3, 256)
	for k := range 256 {
		must(h.Add(Window{StartMs: int64(k), Limit: 6000, AgeMs: 500, RTTMs: 160, Regions: []Traffic{{Admitted: 3000}, {Admitted: 2000}, {Admitted: 900}}}))
	}
	r := Rule{Name: "r", Limit: 6000, WindowMs: 60_000, HasBudget: true, Budget: 2 * percent, Regions: regionNames(3)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Report(r, DefaultTarget); err != nil {
			b.Fatal(err)
		}
	}
}
