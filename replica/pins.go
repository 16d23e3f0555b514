package replica

import (
	"cmp"
	"slices"

	"github.com/georld/rld/control"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// Pins returns the home regions in limits, by rule.
func Pins(set *rules.Set) []route.Pin {
	var pins []route.Pin
	for _, r := range set.Rules() {
		if r.Limit != nil && r.Limit.Homed() && r.Limit.Home != "" {
			pins = append(pins, route.Pin{Rule: uint64(r.ID), Region: r.Limit.Home})
		}
	}
	slices.SortFunc(pins, func(a, b route.Pin) int { return cmp.Compare(a.Rule, b.Rule) })
	return pins[:min(len(pins), route.MaxPins)]
}

// ReportOf returns the report of an acceptor as the control log has it.
func ReportOf(r quorum.Report) control.AcceptorReport {
	return control.AcceptorReport{Number: r.Number, Log: r.Log, Copied: r.Copied, Store: r.Generation, Failing: r.Failing, Unknown: r.Unknown}
}
