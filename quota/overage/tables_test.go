package overage

import (
	"math"
	"slices"
	"testing"

	"github.com/georld/rld/rules"
)

// near reports whether two fractions are within a factor or within points.
func near(got, want, factor, points float64) bool {
	return math.Abs(got-want) <= points || got <= want*factor && want <= got*factor
}

// TestOverageOfCounts holds the prediction, the closed form and the bound to
// a simulation of the estimate gate alone. The last two columns were measured
// elsewhere, by a simulator of single events with 1 % of loss.
func TestOverageOfCounts(t *testing.T) {
	for n, c := range []struct {
		regions      int
		window, lag  float64
		k            float64
		formula      float64
		before, most float64
	}{
		{3, 60, 0.5, 2, 0.011, 0.010, 0.012},
		{3, 60, 0.5, 20, 0.111, 0.102, 0.117},
		{3, 60, 2, 1.5, 0.033, 0.030, 0.034},
		{3, 60, 2, 20, 0.444, 0.410, 0.439},
		{3, 10, 2, 2, 0.267, 0.247, 0.273},
		{5, 60, 2, 20, 0.533, 0.501, 0.513},
		{3, 1, 0.5, 2, 0.667, 0.669, 0.769},
	} {
		x := world{c.regions, int64(c.window * 1000), int64(c.lag * 1000), 6000, int64(c.lag * 1000 / 25)}
		h, overage := x.run(t, uint64(n)+1, 20, steady(c.k))
		rule := Rule{Name: "t", Limit: 6000, WindowMs: x.windowMs, Regions: regionNames(c.regions)}
		p, err := h.Report(rule, DefaultTarget)
		if err != nil {
			t.Fatal(err)
		}
		mean, most := 0.0, slices.Max(overage)
		for _, o := range overage {
			mean += o / float64(len(overage))
		}
		closed := predictAt(rule.Limit, rule.WindowMs, slices.Repeat([]float64{c.k * 6000 / c.window / float64(c.regions)}, c.regions),
			func(int, int) float64 { return c.lag * 1000 }).Ratio
		if !near(closed, c.formula, 1.01, 0.0005) {
			t.Errorf("R=%d k=%g: the closed form gives %.4f, want %.4f", c.regions, c.k, closed, c.formula)
		}
		if !near(mean, c.before, 1.5, 0.003) {
			t.Errorf("R=%d k=%g: measured a mean of %.4f, want about %.4f", c.regions, c.k, mean, c.before)
		}
		if !near(p.Predicted.Ratio, mean, 1.2, 0.002) {
			t.Errorf("R=%d k=%g: predicted %.4f, measured %.4f", c.regions, c.k, p.Predicted.Ratio, mean)
		}
		// The rule of thumb, lag/W, ignores the load: under an attack the same
		// check has to find it.
		if c.k == 20 && near(c.lag/c.window, mean, 1.2, 0.002) {
			t.Errorf("R=%d k=%g: the rule of thumb passes, so the check of predictions is too weak", c.regions, c.k)
		}
		if most > p.WorstNaive.Ratio {
			t.Errorf("R=%d k=%g: a window went %.4f over, the worst case said %.4f", c.regions, c.k, most, p.WorstNaive.Ratio)
		}
	}
}

// TestFalseDenialsOfShares replays shares with a budget of 10 % and of 0 over
// demand of three patterns, with weights that follow it, and equal shares
// without a budget. The figures before are those of a simulator of single
// events; those of transfers are the policy of package transfer with one daemon
// a region.
func TestFalseDenialsOfShares(t *testing.T) {
	equal := []Pin{{0, 333_334}, {1, 333_333}, {2, 333_333}}
	for _, c := range []struct {
		name                           string
		shape                          shape
		ten, zero, static, transferred float64
	}{
		{"bursty1.2", bursty(1.2, 0.05, .6, .3, .1), 0.086, 0.112, 0.225, 0},
		{"solo", solo(), 0.682, 0.708, 0.609, 0.20},
		{"moving0.8", moving(), 0.268, 0.308, 0.382, 0},
	} {
		x := world{3, 60_000, 500, 6000, 100}
		h, _ := x.run(t, 7, 400, c.shape)
		report := func(b rules.PPM, pins []Pin) Report {
			p, err := h.Report(Rule{
				Name: "t", Limit: 6000, WindowMs: 60_000, HasBudget: true, Budget: b,
				Regions: regionNames(3), Pins: pins,
			}, DefaultTarget)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		ten, zero, static := report(10*percent, nil), report(0, nil), report(0, equal)
		for _, f := range []struct {
			name      string
			got, want float64
		}{
			{"10 %", ten.Static, c.ten},
			{"0 %", zero.Static, c.zero},
			{"equal shares", static.Static, c.static},
			{"transfers", ten.Transferred, c.transferred},
		} {
			if !near(f.got, f.want, 1.5, 0.02) {
				t.Errorf("%s, %s: %.3f denied falsely, want about %.3f", c.name, f.name, f.got, f.want)
			}
		}
	}
}

// predictAt is predict for a demand of whole windows at these rates.
func predictAt(limit uint64, windowMs int64, rates []float64, age func(i, j int) float64) Overage {
	demand := 0.0
	for _, r := range rates {
		demand += r * float64(windowMs) / 1000
	}
	return predict(limit, rates, demand, age)
}
