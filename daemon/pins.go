package daemon

import (
	"cmp"
	"slices"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/route"
)

// pinsOf returns the home regions in the limits, by rule.
func pinsOf(set *rules.Set) []route.Pin {
	var pins []route.Pin
	for _, r := range set.Rules() {
		if r.Limit != nil && r.Limit.Home != "" {
			pins = append(pins, route.Pin{Rule: uint64(r.ID), Region: r.Limit.Home})
		}
	}
	slices.SortFunc(pins, func(a, b route.Pin) int { return cmp.Compare(a.Rule, b.Rule) })
	return pins[:min(len(pins), route.MaxPins)]
}
