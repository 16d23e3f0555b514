package overage

import (
	"fmt"

	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// DefaultTarget is the default target of false denials, as a part of all
// requests.
const DefaultTarget rules.PPM = percent / 10

// Report is the state of a rule. Ratios are fractions of one: overages of the
// limit, denials of the hits that a perfect limiter would have admitted.
type Report struct {
	Rule    Rule
	Target  rules.PPM // false denials wanted
	Windows int       // number of windows behind the figures
	Enough  bool      // there was a window with traffic

	// The worst case.
	Bounded    bool    // the rights gate holds: Bound is true in every execution
	Bound      Overage // by budget; without one by the number of regions
	WorstNaive Overage // of the traffic seen, were there no budget
	AgeMs      int64   // greatest view age that these figures allow for
	RTTMs      int64   // greatest round trip

	// The expected overage of the estimate gate, and the measured one.
	Predicted     Overage // mean over the windows that crossed the limit, median ages
	PredictedNow  Overage // with the traffic of the latest window and the present ages
	Crossings     int
	AchievedWorst Overage // measured, in all windows kept
	Headroom      float64 // part of the bound (without a budget: of the limit) that was never used

	// Denials. Gated and FalseDenials are measured in the windows that ran
	// under the present budget of the rule.
	Gated        int     // their number
	FalseDenials float64 // by the rights gate, though the window ended below the limit
	Static       float64 // replayed: static shares under the budget of the rule
	Transferred  float64 // replayed: with transfers

	// The smallest budgets that meet the target; if none does, the greatest
	// that can be written.
	Smallest        rules.PPM // with transfers if these are in time, else without
	SmallestMeets   bool
	SmallestStatic  rules.PPM // without transfers
	StaticMeets     bool
	Least           float64 // false denials under the greatest budget
	TransfersInTime bool    // a window is at least eight round trips long
	Dominant        int     // region with the most demand
	DominantShare   float64 // its part of the demand
	Recommended     Option
	Reason          string   // why, in one sentence
	Alarms          []string // conditions that need attention now, a sentence each
}

// Report measures a rule against the kept windows. The rule must be valid and
// have as many regions as the history.
func (h *History) Report(r Rule, target rules.PPM) (Report, error) {
	if err := r.Validate(); err != nil {
		return Report{}, err
	}
	if len(r.Regions) != h.regions {
		return Report{}, fmt.Errorf("rule %q has %d regions, its history %d", r.Name, len(r.Regions), h.regions)
	}
	if target > whole {
		return Report{}, fmt.Errorf("a target of %v false denials, want at most 100%%", target)
	}
	p := Report{
		Rule: r, Target: target, Windows: h.count,
		AgeMs: h.longest(func(l Link) int64 { return l.AgeMaxMs }),
		RTTMs: h.longest(func(l Link) int64 { return l.RTTMs }),
	}
	p.TransfersInTime = r.WindowMs >= 8*p.RTTMs
	h.reportOverage(&p)
	h.reportDenials(&p)
	p.Recommended, p.Reason = recommend(&p)
	p.Alarms = h.alarms(&p)
	return p, nil
}

// reportOverage sets the overages of the report.
func (h *History) reportOverage(p *Report) {
	r := &p.Rule
	b, gated := r.gated()
	p.Bounded = gated && !r.Open
	p.Bound = over(float64(r.Limit)*float64(h.regions-1), r.Limit)
	most := r.Limit
	if gated {
		most = rights(r.Limit, b)
	}
	if p.Bounded {
		p.Bound = over(float64(most-r.Limit), r.Limit)
	}
	p.WorstNaive = h.worstNaive(r, p.AgeMs)
	fullest := 0.0 // the greatest part of its limit that a window admitted
	for k := range h.count {
		w := h.at(k)
		admitted, demand := w.totals()
		p.AchievedWorst = worse(p.AchievedWorst, over(float64(sat.Sub(admitted, w.Limit)), w.Limit))
		fullest = max(fullest, float64(admitted)/float64(w.Limit))
		if w.Crossed {
			p.Crossings++
			x := h.atCrossing(w, func(l Link) int64 { return l.AgeP50Ms })
			p.Predicted.Hits += x.Hits
			p.Predicted.Ratio += x.Ratio
		}
		if w.Crossed && w.StartMs == h.at(h.count-1).StartMs {
			p.PredictedNow = worse(p.PredictedNow, h.atCrossing(w, func(l Link) int64 { return l.AgeNowMs }))
		}
		p.Enough = p.Enough || demand > 0
	}
	if p.Crossings > 0 {
		p.Predicted.Hits /= float64(p.Crossings)
		p.Predicted.Ratio /= float64(p.Crossings)
	}
	p.Headroom = max(0, 1-fullest*float64(r.Limit)/float64(most))
}

// reportDenials sets the cost of the rights gate, measured and replayed.
func (h *History) reportDenials(p *Report) {
	r := &p.Rule
	b, bounded := r.gated()
	byRegion := make([]float64, h.regions)
	wanted, missed, all := 0.0, 0.0, 0.0
	for k := range h.count {
		w := h.at(k)
		admitted, demand := w.totals()
		denied := uint64(0)
		for i := range w.Regions {
			t := &w.Regions[i]
			byRegion[i] += float64(t.Demand())
			denied += clip(t.DeniedRights)
		}
		all += float64(demand)
		if bounded && w.Gated && w.Budget == b {
			p.Gated++
			wanted += float64(min(demand, w.Limit))
			missed += float64(min(denied, sat.Sub(w.Limit, admitted)))
		}
	}
	for i, d := range byRegion {
		if d > byRegion[p.Dominant] {
			p.Dominant = i
		}
	}
	if all > 0 {
		p.DominantShare = byRegion[p.Dominant] / all
	}
	if wanted > 0 {
		p.FalseDenials = missed / wanted
	}
	if r.Mode == Strict {
		p.Smallest, p.SmallestMeets, p.SmallestStatic, p.StaticMeets = 0, true, 0, true
		return // one owner: no rights remain elsewhere
	}
	past := newReplay(h, r)
	if bounded {
		p.Static, p.Transferred = past.falseDenials(b)
	}
	p.SmallestStatic, p.StaticMeets = past.smallest(h.regions, p.Target, false)
	p.Smallest, p.SmallestMeets = p.SmallestStatic, p.StaticMeets
	least, withTransfers := past.falseDenials(r.largest())
	p.Least = least
	if p.TransfersInTime {
		p.Least = withTransfers
		p.Smallest, p.SmallestMeets = past.smallest(h.regions, p.Target, true)
	}
}
