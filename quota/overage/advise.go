package overage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/georld/rld/rules"
)

// ErrNoTraffic is returned before any window with traffic was seen.
var ErrNoTraffic = errors.New("no window with traffic was seen yet: ask again when there was")

// Advice is a setting to paste, and its effect.
type Advice struct {
	YAML         string    // lines of rate_limit, without indentation
	Budget       rules.PPM // the smallest that meets the target
	Bound        Overage   // worst case with it, in every execution
	Predicted    Overage   // expected where the limit is crossed; never above Bound
	FalseDenials float64   // expected with it: with transfers if these are in time
	Static       float64   // the same without transfers
	Transfers    bool      // the target needs transfers
	Text         string    // the effect, in a sentence or two
}

// Advise returns the smallest budget that keeps false denials to target, a
// fraction of the hits that fit the limit. A smaller present budget is kept if
// it was measured to be enough. The error is ErrNoTraffic before there is any
// traffic. Otherwise it names remedies: if no budget is enough, or if the
// present one was measured to deny more than it should.
func Advise(h *History, r Rule, target rules.PPM) (Advice, error) {
	p, err := h.Report(r, target)
	if err != nil {
		return Advice{}, err
	}
	switch {
	case r.Mode == Strict:
		return Advice{}, fmt.Errorf("rule %q: a strict limit has no budget: its owner enforces it", r.Name)
	case !p.Enough:
		return Advice{}, fmt.Errorf("rule %q: %w", r.Name, ErrNoTraffic)
	case p.Recommended == Inspect:
		return Advice{}, fmt.Errorf("rule %q: %s", r.Name, lowerFirst(p.Reason, r.Regions))
	case !p.SmallestMeets:
		return Advice{}, fmt.Errorf("rule %q: no overage_budget up to %v keeps false denials to %v, the "+
			"best is %s in %s. Remedies: %s",
			r.Name, r.largest(), target, pct(p.Least), lately(p.Windows), strings.Join(remedies(&p), "; or "))
	case float64(rights(r.Limit, p.Smallest))/float64(h.regions) < fewHits && h.regions > 1:
		return atOwner(&p), nil
	}
	a := Advice{Budget: p.Smallest, Transfers: p.Smallest < p.SmallestStatic || !p.StaticMeets}
	how := "would have"
	seen := newReplay(h, &r)
	if b, bounded := r.gated(); bounded && b < p.Smallest && p.measured() {
		a.Budget, a.Transfers, how = b, true, "has"
		a.Static, a.FalseDenials = p.Static, p.FalseDenials
	} else if a.Static, a.FalseDenials = seen.falseDenials(a.Budget); !p.TransfersInTime {
		a.FalseDenials = a.Static
	}
	a.bound(&p)
	lines := []string{"overage_budget: " + a.Budget.String()}
	if r.Mode == Partition && a.Budget > 0 {
		lines = append(lines, "consistency: eventual")
	}
	a.YAML = strings.Join(lines, "\n")
	a.Text = fmt.Sprintf("In %s it %s denied %s falsely; %s.",
		lately(p.Windows), how, pct(a.FalseDenials), a.overages(&p))
	if a.Transfers {
		a.Text += fmt.Sprintf(" It relies on transfers; shares alone would deny %s.", pct(a.Static))
	}
	if p.Recommended == OneOwner {
		a.Text += " placement: owner may suit it better: " + lowerFirst(p.Reason, r.Regions)
	}
	return a, nil
}

// atOwner returns the advice for a limit whose rights are not split: no budget
// is needed.
func atOwner(p *Report) Advice {
	a := Advice{YAML: "overage_budget: 0%\nplacement: owner"}
	a.bound(p)
	a.Text = fmt.Sprintf("One owner decides, so nothing is denied falsely; %s. Requests from elsewhere "+
		"wait for %s.", a.overages(p), waits(p))
	return a
}

// bound sets the overages of the budget.
func (a *Advice) bound(p *Report) {
	a.Bound = over(float64(rights(p.Rule.Limit, a.Budget)-p.Rule.Limit), p.Rule.Limit)
	a.Predicted = p.Predicted
	if a.Predicted.Ratio > a.Bound.Ratio {
		a.Predicted = a.Bound
	}
}

// overages describes the expected and the worst overage.
func (a *Advice) overages(p *Report) string {
	switch {
	case a.Bound.Hits == 0:
		return "the limit is never exceeded"
	case p.Crossings == 0:
		return fmt.Sprintf("the limit was never crossed, and %s over is the worst case", pct(a.Bound.Ratio))
	}
	return fmt.Sprintf("%s over is expected when the limit is crossed, %s at worst",
		pct(a.Predicted.Ratio), pct(a.Bound.Ratio))
}
