package report

import (
	"math"

	"github.com/georld/rld/sim"
)

// regionLoss is a result as a run of ten minutes leaves it: three regions, two
// rules, one region lost for two minutes, a clock that is stepped.
func regionLoss() *sim.Result {
	const steps, step = 300, 2.0
	r := &sim.Result{
		Scenario: "region-loss", Seed: 18446744073709551615, Regions: 3, Daemons: 9,
		VirtualSeconds: 600, WallSeconds: 4.875, Events: 1234567, Decisions: 600123, Admitted: 310456, Denied: 289667,
		Rules: []sim.RuleResult{
			{
				Rule: "edge: tier=free > user", Algorithm: "fixed_window", Limit: 6000, Admitted: 58123, Denied: 41877,
				Windows: 10, OverageRatioMax: 0.5213, OverageRatioMean: 0.0832, Bound: 0.6151, FalseDenialRatio: 0.000013,
				Budget: 0.0999, Exceeded: 3, ExceededWorst: 0.3829,
			},
			{
				Rule: "edge: <script>alert(1)</script>", Algorithm: "token_bucket", Limit: 50, Admitted: 252333,
				Denied: 247790, Windows: 12000, OverageRatioMax: 0.04, OverageRatioMean: 0.0021, Bound: 1.875,
			},
		},
		Auditors: []sim.Audit{
			{Name: "convergence", Checks: 36, Violations: 0},
			{Name: "overage", Checks: 600122, Violations: 2, First: `at 61.5s: eu-1 admitted "a" & <b> 31 over its bound`},
		},
		BytesPerDecision: 57.25,
		Staleness: sim.Staleness{
			RegionP50Ms: 54.5, RegionP99Ms: 113.2, AcrossP50Ms: 201.7, AcrossP99Ms: 120345.6, UnsentP99Ms: 1003.4,
		},
		Traffic: sim.Traffic{
			Frames: 501233, Bytes: 34357041, Lost: 5011, Duplicated: 4987, Mangled: 71, Refused: 70, Accepted: 1,
			Overflowed: 12, Unsendable: 2, Unreadable: 5, Rights: 1901, RightsBytes: 402113,
			Strict: 9922, StrictBytes: 811333,
		},
		Rights: &sim.RightsResult{
			Policy: "naive", ByEstimate: 811, ByRights: 812, ByBoth: 813, Given: 4201, Received: 4202, Transfers: 977,
			PerDecision: 0.0016, Epochs: 14,
		},
		Strict: &sim.StrictResult{
			Decisions: 40123, Local: 36017, LocalRatio: 0.8977, Failed: 211, Waited: 4106, WaitP50Ms: 1.25, WaitP99Ms: 83.5,
			WaitMaxMs: 184.75, Messages: 9921, PerDecision: 0.2473, Requests: 4309, Grants: 4211, Accepts: 707, Accepted: 694,
			RequestsPerSecond: 91, Syncs: 388, Takeovers: 17, Layouts: 2, UnderRatio: 0.0114,
		},
		Grid: []sim.GridCell{
			{
				WindowSeconds: 60, LagSeconds: 0.5, Pattern: "attack20", Policy: "naive", Windows: 6,
				OverageMean: 0.1163, OverageWorst: 0.1238, Exceeded: 5,
				Design: &sim.GridDesign{OverageMean: 0.106, OverageWorst: 0.119},
			},
			{
				WindowSeconds: 60, LagSeconds: 0.5, Pattern: "solo", Policy: "naive", Windows: 12, FalseDenial: 0.0311,
				Transfers: 0.12,
			},
			{
				WindowSeconds: 60, LagSeconds: 0.5, Pattern: "attack20", Policy: "cap", Windows: 6,
				OverageMean: 0.0194, OverageWorst: 0.0323, FalseDenial: 0.0027,
				Design: &sim.GridDesign{OverageMean: 0.016, OverageWorst: 0.028, FalseDenial: 0.001},
			},
			{WindowSeconds: 60, LagSeconds: 0.5, Pattern: "solo", Policy: "cap", Windows: 12, FalseDenial: 0.59},
		},
		Seen:      map[string]uint64{"peer_silent": 4, "resync_done": 21, "peer_responding": 3},
		TraceHash: "00ff3a5be1c2d4e7",
	}
	s := &sim.Series{
		StepSeconds: step, Regions: []string{"eu", "us", "ap"},
		Rules: []sim.RuleSeries{
			{Rule: r.Rules[0].Rule, Limit: 6000, WindowSeconds: 60, Admitted: make([][]float64, 3)},
			{Rule: r.Rules[1].Rule, Limit: 50, WindowSeconds: 1, Admitted: make([][]float64, 3)},
		},
		Faults: []sim.FaultRecord{
			{From: 120, To: 240, Text: "region eu is lost"},
			{From: 130, To: 130, Text: "the clock of us-1 goes back 400 ms"},
			{From: 300, To: 302, Text: "cut from ap to us"},
		},
	}
	for i := range steps {
		t := float64(i+1) * step
		lost := t > 120 && t <= 240
		s.Seconds = append(s.Seconds, t)
		into := math.Mod(t, 60)
		for region := range 3 {
			hits := 0.0
			if into < 30 {
				hits = math.Round(130 + 25*math.Sin(t/17+float64(region)))
			}
			if region == 0 && lost {
				hits = 0
			}
			s.Rules[0].Admitted[region] = append(s.Rules[0].Admitted[region], hits)
			s.Rules[1].Admitted[region] = append(s.Rules[1].Admitted[region], math.Round(hits*0.7+40))
		}
		across, over := 200+90*math.Sin(t), 0.03
		if lost {
			across, over = (t-120)*1000, 0.52
		}
		for j := range s.Rules {
			s.Rules[j].Denied = append(s.Rules[j].Denied, math.Round(300+100*math.Sin(t/31)))
			s.Rules[j].Overage = append(s.Rules[j].Overage, over/float64(1+12*j))
			s.Rules[j].Bound = append(s.Rules[j].Bound, 0.6151*float64(1+j*2))
		}
		s.InRegionMs = append(s.InRegionMs, 80+30*math.Sin(t/3))
		s.AcrossMs = append(s.AcrossMs, across)
	}
	r.Series = s
	return r
}
