package sim

import (
	"testing"
	"time"
)

// TestNearLimits: counts of keys near their limits arrive within a region in a
// delay and an interval, and across once they are more than a region withholds.
// Windows before a key first reached its limit are left out of the later ones.
func TestNearLimits(t *testing.T) {
	for _, windows := range []int{1, 3} {
		cfg := standard(t, time.Duration(windows)*time.Minute)
		cfg.Workloads[0].Keys, cfg.Settle = 20, 0
		r, err := Run(cfg, Options{Auditors: TestAuditors()})
		if err != nil {
			t.Fatal(err)
		}
		s, rule := &r.Staleness, &r.Rules[0]
		if s.NearRegionP99Ms < 1 || s.NearRegionP99Ms > 120 || s.NearAcrossP99Ms < 40 || s.NearAcrossP99Ms > 1_000 {
			t.Errorf("%d windows: %g ms in a region and %g across", windows, s.NearRegionP99Ms, s.NearAcrossP99Ms)
		}
		if later := rule.OverageLaterMean > 0; later != (windows > 1) || rule.OverageLaterMax > rule.OverageRatioMax {
			t.Errorf("%d windows: overage %g and later %g, at worst %g and %g", windows,
				rule.OverageRatioMean, rule.OverageLaterMean, rule.OverageRatioMax, rule.OverageLaterMax)
		}
	}
}
