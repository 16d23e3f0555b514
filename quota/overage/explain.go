package overage

import (
	"fmt"
	"strings"
)

// Explain describes the worst case of a rule, the reason for it, and the
// setting that changes it, in three sentences. Every figure in them is one of
// the report's.
func Explain(p Report) [3]string {
	if p.Rule.Mode == Strict {
		return explainStrict(&p)
	}
	return [3]string{worstCase(&p), why(&p), knob(&p)}
}

// worstCase describes the bound that holds in every execution.
func worstCase(p *Report) string {
	limit := float64(p.Rule.Limit)
	window := length(p.Rule.WindowMs)
	b, gated := p.Rule.gated()
	switch {
	case gated && p.Rule.Open:
		return fmt.Sprintf("While all daemons have rights, they admit at most %s hits in a window of %s; a daemon without any "+
			"decides by the counts that it knows, as on_failure: allow asks, and nothing bounds the sum.",
			grouped(float64(rights(p.Rule.Limit, b))), window)
	case p.Bounded && p.Bound.Hits == 0:
		return fmt.Sprintf("No window of %s ever admits more than the limit of %s hits, whatever is "+
			"late, lost or partitioned.",
			window, grouped(limit))
	case p.Bounded:
		return fmt.Sprintf("At worst all %s together admit %s hits in a window of %s, %s over the "+
			"limit of %s, whatever is late, lost or partitioned.",
			p.Rule.holders(), grouped(limit+p.Bound.Hits), window, pct(p.Bound.Ratio), grouped(limit))
	case len(p.Rule.Regions) == 1:
		return fmt.Sprintf("At worst each daemon of the region that receives nothing from the others admits the "+
			"limit of %s hits in a window of %s: without a budget only their number bounds it.",
			grouped(limit), window)
	default:
		return fmt.Sprintf("At worst %s admit %s hits in a window of %s, %s over the limit of %s: "+
			"without a budget only the number of regions bounds it.",
			plural(len(p.Rule.Regions), "region"),
			grouped(limit+p.Bound.Hits), window, pct(p.Bound.Ratio), grouped(limit))
	}
}

// why describes the mechanism, and its effect on the traffic.
func why(p *Report) string {
	if !p.Enough {
		return "No traffic was seen yet, so this is the bound and no forecast."
	}
	b, gated := p.Rule.gated()
	if len(p.Rule.Regions) == 1 {
		if gated {
			return "There is one region, which holds all rights, and its daemons hold a part each."
		}
		return "There is one region, whose daemons send each other their counts."
	}
	seen := "nothing over was seen"
	if p.AchievedWorst.Hits > 0 {
		seen = fmt.Sprintf("%s over was the most seen", pct(p.AchievedWorst.Ratio))
	}
	if gated {
		held := "Nothing is admitted without rights"
		if p.Rule.Open {
			held = "Daemons with rights admit nothing beyond them"
		}
		return fmt.Sprintf("%s, and these sum to %s in every window; "+
			"counts alone, which are up to %s late, could have let the traffic of %s go %s over, and %s.",
			held, grouped(float64(rights(p.Rule.Limit, b))), length(p.AgeMs), lately(p.Windows), pct(p.WorstNaive.Ratio), seen)
	}
	typical := "the limit was never crossed"
	if p.Crossings > 0 {
		typical = fmt.Sprintf("%s is expected when the limit is crossed", pct(p.Predicted.Ratio))
	}
	return fmt.Sprintf("Each region knows the counts of the others up to %s late, and nothing else "+
		"holds it back: with the traffic of %s that allows %s over, %s, and %s.",
		length(p.AgeMs), lately(p.Windows), pct(p.WorstNaive.Ratio), typical, seen)
}

// knob describes the setting that moves the worst case, and its effect.
func knob(p *Report) string {
	b, bounded := p.Rule.gated()
	name := "overage_budget moves it"
	if p.Rule.Mode == Partition {
		name = "consistency: partition is a budget of 0%, which consistency: eventual with an " +
			"overage_budget would relax"
	}
	switch {
	case p.Recommended == OneOwner:
		return "placement: owner suits it better than any budget: " + lowerFirst(p.Reason, p.Rule.Regions)
	case p.Recommended == Inspect:
		return fmt.Sprintf("%s, but is not the cause: %s", name, lowerFirst(p.Reason, p.Rule.Regions))
	case !p.Enough || len(p.Rule.Regions) == 1:
		return name + ": a smaller one is a tighter bound, and denies more while others have rights left."
	case !bounded && p.SmallestMeets:
		return fmt.Sprintf("%s: %v is the smallest that keeps false denials to %v, and is then a bound "+
			"in every execution.", name, p.Smallest, p.Target)
	case !bounded:
		return fmt.Sprintf("%s, but none up to %v keeps false denials to %v. Remedies: %s.",
			name, p.Rule.largest(), p.Target, strings.Join(remedies(p), "; or "))
	case b == 0 && p.SmallestMeets && p.Smallest == 0:
		return fmt.Sprintf("%s: %v %s, within the %v wanted, and no bound is tighter.", name, b, p.cost(), p.Target)
	case p.measured() && p.Smallest >= b:
		return fmt.Sprintf("%s: %v %s, within the %v wanted, and a smaller one would deny more.",
			name, b, p.cost(), p.Target)
	case !p.SmallestMeets:
		return fmt.Sprintf("%s: %v %s, and none up to %v keeps to %v. Remedies: %s.",
			name, b, p.cost(), p.Rule.largest(), p.Target, strings.Join(remedies(p), "; or "))
	case p.Smallest > b:
		return fmt.Sprintf("%s: %v %s, and %v is the smallest that keeps to %v.",
			name, b, p.cost(), p.Smallest, p.Target)
	case p.Smallest < b:
		return fmt.Sprintf("%s: %v %s, and %v is enough to keep to %v.", name, b, p.cost(), p.Smallest, p.Target)
	default:
		return fmt.Sprintf("%s: %v %s, and nothing smaller keeps to %v.", name, b, p.cost(), p.Target)
	}
}

// cost describes the false denials of the present budget: measured, or replayed
// if it was not in force for long.
func (p *Report) cost() string {
	if p.Gated >= enoughMeasured {
		return fmt.Sprintf("denied %s falsely in %s", pct(p.FalseDenials), lately(p.Gated))
	}
	return fmt.Sprintf("would have denied %s falsely in %s", pct(p.expected()), lately(p.Windows))
}

// lowerFirst makes a sentence continue after a colon: its first letter becomes
// lower case, unless it begins with the name of a region.
func lowerFirst(s string, regions []string) string {
	for _, r := range regions {
		if strings.HasPrefix(s, r) {
			return s
		}
	}
	return strings.ToLower(s[:1]) + s[1:]
}
