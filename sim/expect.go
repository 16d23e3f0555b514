package sim

import (
	"fmt"
	"slices"

	"github.com/georld/rld/gossip"
)

// Expect is the claims of a scenario. A claim that does not hold fails the run
// like a violation.
type Expect struct {
	Claims []Claim
	// Bound claims that no rule went further over its limit than Theorem 1
	// allows.
	Bound bool
	// Seen and NotSeen are the events of replicas that the run must reach and
	// may not.
	Seen, NotSeen []gossip.EventKind
}

// Claim bounds a figure of the result, or of each of its rules.
type Claim struct {
	Figure *Figure
	Value  float64
}

// Figure is a figure that scenarios make claims about: the most that it may be,
// or the least.
type Figure struct {
	Name   string // the field of expect
	Unit   string // "ratio", "ms", "count", or "" for a plain number
	Least  bool
	text   string // for messages
	of     func(*Result) float64
	ofRule func(*RuleResult) float64 // of figures of each rule
}

// Figures lists the figures of claims. The claims about strict keys are about
// the decisions that owners made.
var Figures = []Figure{
	{Name: "overage_ratio_max", Unit: "ratio", text: "worst overage", ofRule: func(r *RuleResult) float64 { return r.OverageRatioMax }},
	{Name: "overage_ratio_mean", Unit: "ratio", text: "mean overage", ofRule: func(r *RuleResult) float64 { return r.OverageRatioMean }},
	{Name: "overage_at_least", Unit: "ratio", Least: true, text: "worst overage", ofRule: func(r *RuleResult) float64 { return r.OverageRatioMax }},
	{Name: "false_denial_ratio", Unit: "ratio", text: "false denials", ofRule: func(r *RuleResult) float64 { return r.FalseDenialRatio }},
	{"in_region_p99", "ms", false, "staleness in a region (p99)", func(r *Result) float64 { return r.Staleness.RegionP99Ms }, nil},
	{"across_p99", "ms", false, "staleness across regions (p99)", func(r *Result) float64 { return r.Staleness.AcrossP99Ms }, nil},
	{"bytes_per_decision", "", false, "bytes a decision", func(r *Result) float64 { return r.BytesPerDecision }, nil},
	{"admitted", "count", true, "hits admitted", func(r *Result) float64 { return float64(r.Admitted) }, nil},
	{"denied", "count", true, "hits denied", func(r *Result) float64 { return float64(r.Denied) }, nil},
	{"degraded", "count", true, "degraded answers", func(r *Result) float64 { return float64(r.Degraded) }, nil},
	{"local_ratio", "ratio", true, "local decisions of strict keys", func(r *Result) float64 { return r.strict().LocalRatio }, nil},
	{"under_ratio", "ratio", false, "missed by strict windows", func(r *Result) float64 { return r.strict().UnderRatio }, nil},
	{
		"requests_per_second", "count", false, "requests at one daemon in a second",
		func(r *Result) float64 { return float64(r.strict().RequestsPerSecond) }, nil,
	},
}

// strict returns the figures of strict keys, zeros where there are none.
func (r *Result) strict() *StrictResult {
	if r.Strict == nil {
		return &StrictResult{}
	}
	return r.Strict
}

// check counts a check. Only the first violation is described.
func (a *Audit) check(ok bool, format string, args ...any) {
	a.Checks++
	if ok {
		return
	}
	if a.Violations++; a.First == "" {
		a.First = fmt.Sprintf(format, args...)
	}
}

// audit checks the claims.
func (x *Expect) audit(w *World, r *Result) Audit {
	e := Audit{Name: "expectations"}
	for _, c := range x.Claims {
		if c.Figure.of != nil {
			c.check(&e, "", c.Figure.of(r))
			continue
		}
		for i := range r.Rules {
			c.check(&e, "rule "+r.Rules[i].Rule+": ", c.Figure.ofRule(&r.Rules[i]))
		}
	}
	for i := range r.Rules {
		if rule := &r.Rules[i]; x.Bound {
			e.check(rule.OverageRatioMax <= rule.Bound, "rule %s: worst overage %.4g, above its bound of %.4g",
				rule.Rule, rule.OverageRatioMax, rule.Bound)
		}
	}
	for _, k := range gossip.EventKinds() {
		if slices.Contains(x.Seen, k) {
			e.check(w.seen[k] > 0, "no %v happened, expected at least one", k)
		}
		if slices.Contains(x.NotSeen, k) {
			e.check(w.seen[k] == 0, "%d times %v, expected none", w.seen[k], k)
		}
	}
	return e
}

// check checks the figure of a claim, which is that of a place such as a rule.
func (c *Claim) check(e *Audit, place string, got float64) {
	ok, want := got <= c.Value, "most"
	if c.Figure.Least {
		ok, want = got >= c.Value, "least"
	}
	is, value := c.Figure.text+" %.4g", "%.4g"
	switch c.Figure.Unit {
	case "ms":
		is, value = is+" ms", value+" ms"
	case "count":
		is, value = "%.0f "+c.Figure.text, "%.0f"
	}
	e.check(ok, "%s"+is+", expected at %s "+value, place, got, want, c.Value)
}
