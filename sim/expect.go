package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/gossip"
)

// Expect is the claims of a scenario. A claim that does not hold fails the run
// like a violation. A nil bound claims nothing.
type Expect struct {
	// The most and the least that any rule may have of these.
	OverageMax, OverageMean, FalseDenial *float64
	OverageMaxLeast                      *float64
	// Bound claims that no rule went further over its limit than Theorem 1
	// allows.
	Bound bool
	// The most that views may be old in and across regions (p99), and bytes a
	// decision may cost.
	InRegion, Across *time.Duration
	BytesPerDecision *float64
	// The least hits admitted and denied over the run, and descriptors that
	// were answered less than exactly.
	Admitted, Denied, Degraded *uint64
	// LocalRatio is the least share of the decisions of owners that were made
	// at once, UnderRatio the most that strict windows may have missed,
	// RequestsPerSecond the most asks that a daemon may have got in a second.
	LocalRatio, UnderRatio *float64
	RequestsPerSecond      *uint64
	// Seen lists events of the replicas that must have happened, NotSeen
	// those that must not.
	Seen, NotSeen []gossip.EventKind
}

// expectation checks claims and keeps count.
type expectation struct {
	audit Audit
}

func (e *expectation) check(ok bool, format string, args ...any) {
	e.audit.Checks++
	if ok {
		return
	}
	if e.audit.Violations++; e.audit.First == "" {
		e.audit.First = fmt.Sprintf(format, args...)
	}
}

// audit holds the claims against a result.
func (x *Expect) audit(w *World, r *Result) Audit {
	e := expectation{audit: Audit{Name: "expectations"}}
	for i := range r.Rules {
		x.checkRule(&e, &r.Rules[i])
	}
	atMost(&e, "staleness in a region (p99)", r.Staleness.RegionP99Ms, inMillis(x.InRegion), " ms")
	atMost(&e, "staleness across regions (p99)", r.Staleness.AcrossP99Ms, inMillis(x.Across), " ms")
	atMost(&e, "bytes a decision", r.BytesPerDecision, x.BytesPerDecision, "")
	if x.Admitted != nil {
		e.check(r.Admitted >= *x.Admitted, "%d hits admitted, expected at least %d", r.Admitted, *x.Admitted)
	}
	if x.Denied != nil {
		e.check(r.Denied >= *x.Denied, "%d hits denied, expected at least %d", r.Denied, *x.Denied)
	}
	if x.Degraded != nil {
		e.check(r.Degraded >= *x.Degraded, "%d degraded answers, expected at least %d", r.Degraded, *x.Degraded)
	}
	x.checkStrict(&e, r.Strict)
	for _, k := range gossip.EventKinds() {
		if slices.Contains(x.Seen, k) {
			e.check(w.seen[k] > 0, "no %v happened, expected at least one", k)
		}
		if slices.Contains(x.NotSeen, k) {
			e.check(w.seen[k] == 0, "%d times %v, expected none", w.seen[k], k)
		}
	}
	return e.audit
}

func (x *Expect) checkStrict(e *expectation, r *StrictResult) {
	if r == nil {
		r = &StrictResult{}
	}
	if x.LocalRatio != nil {
		e.check(r.LocalRatio >= *x.LocalRatio, "%.4g of the decisions of strict keys were local, expected at least %.4g",
			r.LocalRatio, *x.LocalRatio)
	}
	atMost(e, "missed by strict windows", r.UnderRatio, x.UnderRatio, "")
	if x.RequestsPerSecond != nil {
		e.check(r.RequestsPerSecond <= *x.RequestsPerSecond, "%d requests at one daemon in a second, expected at most %d",
			r.RequestsPerSecond, *x.RequestsPerSecond)
	}
}

func (x *Expect) checkRule(e *expectation, r *RuleResult) {
	name := "rule " + r.Rule + ": "
	atMost(e, name+"worst overage", r.OverageRatioMax, x.OverageMax, "")
	atMost(e, name+"mean overage", r.OverageRatioMean, x.OverageMean, "")
	atMost(e, name+"false denials", r.FalseDenialRatio, x.FalseDenial, "")
	if x.OverageMaxLeast != nil {
		e.check(r.OverageRatioMax >= *x.OverageMaxLeast,
			"%sworst overage %.4g, expected at least %.4g", name, r.OverageRatioMax, *x.OverageMaxLeast)
	}
	if x.Bound {
		e.check(r.OverageRatioMax <= r.Bound, "%sworst overage %.4g, above its bound of %.4g",
			name, r.OverageRatioMax, r.Bound)
	}
}

func atMost(e *expectation, what string, got float64, most *float64, unit string) {
	if most != nil {
		e.check(got <= *most, "%s %.4g%s, expected at most %.4g%s", what, got, unit, *most, unit)
	}
}

func inMillis(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	ms := millis(*d)
	return &ms
}
