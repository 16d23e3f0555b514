package overage

import (
	"fmt"
	"strings"

	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/rules"
)

// Option is a recommendation for a rule. The cheapest one that meets the target
// is chosen, in this order. A window of unacknowledged rights, which elsewhere
// comes between Transfers and OneOwner, is not offered: its bound holds only
// while all daemons agree on the membership.
type Option uint8

// The options.
const (
	Wait         Option = iota // nothing was measured yet
	StaticShares               // (a) shares of the rights that follow demand
	Transfers                  // (b) and transfers to regions that run short
	OneOwner                   // (d) do not split the limit: one owner decides
	OtherBudget                // (e) another budget, the smallest that meets the target, if any
	Inspect                    // the budget should be enough, but denies too much
)

var optionNames = []string{
	"wait", "static shares", "shares and transfers", "one owner", "another budget", "inspect",
}

// String returns the name in reports.
func (o Option) String() string { return enum.Name(o, optionNames...) }

const (
	fewHits   = 10  // a region with fewer rights cannot split them
	dominates = 0.9 // a region with this part of the demand may as well own the limit
)

// recommend returns the option for a measured report, and the reason for it.
func recommend(p *Report) (Option, string) {
	b, bounded := p.Rule.gated()
	n := len(p.Rule.Regions)
	tooFew := float64(rights(p.Rule.Limit, b))/float64(n) < fewHits
	switch {
	case p.Rule.Mode == Strict:
		return OneOwner, "A strict limit has one owner, and no budget."
	case n == 1:
		return StaticShares, "There is one region, which holds all rights of the limit."
	case tooFew:
		return OneOwner, fmt.Sprintf("The rights of %s hits are too few to split among %s.",
			grouped(float64(rights(p.Rule.Limit, b))), plural(n, "region"))
	case !p.Enough:
		return Wait, "No window with traffic was seen yet."
	case p.surprising():
		return Inspect, fmt.Sprintf("It denied %s falsely in %s, where its demand and weights explain "+
			"%s: rights are not where they are needed, so look at transfers, at daemons without a share "+
			"and at links before the budget.",
			pct(p.FalseDenials), lately(p.Gated), pct(p.expected()))
	case bounded && p.Static <= p.Target.Ratio():
		return StaticShares, fmt.Sprintf("Shares that follow demand are enough: in %s they would have "+
			"denied %s falsely.",
			lately(p.Windows), pct(p.Static))
	case bounded && p.TransfersInTime && p.Transferred <= p.Target.Ratio():
		return Transfers, fmt.Sprintf("Shares alone would have denied %s falsely in %s, and transfers "+
			"leave %s: they take a round trip of %s in a window of %s.",
			pct(p.Static), lately(p.Windows), pct(p.Transferred), length(p.RTTMs), length(p.Rule.WindowMs))
	case p.measured():
		return Transfers, fmt.Sprintf("Transfers keep it to %s of false denials, measured in %s; shares "+
			"alone would have denied %s.",
			pct(p.FalseDenials), lately(p.Gated), pct(p.Static))
	case p.DominantShare >= dominates:
		return OneOwner, fmt.Sprintf("%s has %s of the demand, so it may decide alone.",
			p.Rule.Regions[p.Dominant], pct(p.DominantShare))
	case p.SmallestMeets && !bounded:
		return OtherBudget, fmt.Sprintf("It has no budget, and %v would bound it with at most %v of "+
			"false denials.", p.Smallest, p.Target)
	case p.SmallestMeets:
		return OtherBudget, fmt.Sprintf("A budget of %v %s; %v is the smallest that keeps to %v.",
			b, p.cost(), p.Smallest, p.Target)
	default:
		return OtherBudget, fmt.Sprintf("No budget keeps false denials to %v, the best is %s. Remedies: %s.",
			p.Target, pct(p.Least), strings.Join(remedies(p), "; or "))
	}
}

// enoughMeasured is the number of windows from which a measurement overrides
// the replay.
const enoughMeasured = 10

// measured reports whether the present budget was measured to meet the target.
func (p *Report) measured() bool {
	return p.Gated >= enoughMeasured && p.FalseDenials <= p.Target.Ratio()
}

// surprising reports whether the present budget was measured to miss the target
// although the replay meets it.
func (p *Report) surprising() bool {
	return p.Gated >= enoughMeasured && p.FalseDenials > p.Target.Ratio() && p.expected() <= p.Target.Ratio()
}

// expected returns the false denials that the replay has for the budget of the
// rule: with transfers if these are in time.
func (p *Report) expected() float64 {
	if p.TransfersInTime {
		return p.Transferred
	}
	return p.Static
}

// waits returns the time that a request waits for an owner in another region.
func waits(p *Report) string {
	if p.RTTMs == 0 {
		return "a round trip"
	}
	return "a round trip of up to " + length(p.RTTMs)
}

// remedies lists remedies for a rule whose target no budget meets.
func remedies(p *Report) []string {
	list := []string{fmt.Sprintf("a target of %v", ceilPPM(p.Least))}
	owner := "placement: owner, which splits no rights and lets requests from elsewhere wait for " + waits(p)
	if p.DominantShare >= 0.5 {
		owner += fmt.Sprintf(" (%s of the demand is in %s)", pct(p.DominantShare), p.Rule.Regions[p.Dominant])
	}
	list = append(list, owner)
	if !p.TransfersInTime {
		list = append(list, fmt.Sprintf("a window of at least %s, eight round trips, so that transfers "+
			"are in time", length(8*p.RTTMs)))
	}
	if len(p.Rule.Pins) > 0 {
		list = append(list, "weights that are not pinned, so that they follow demand")
	}
	return append(list, fmt.Sprintf("no overage_budget, and a worst case of %s over", pct(p.Rule.largest().Ratio())))
}

// ceilPPM rounds a fraction up to a share that is easy to write: to hundredths
// of a percent.
func ceilPPM(f float64) rules.PPM {
	const unit = percent / 100
	n := rules.PPM(min(max(f, 0), 1) * whole / unit)
	for (n * unit).Ratio() < f {
		n++
	}
	return n * unit
}
