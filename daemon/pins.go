package daemon

import (
	"cmp"
	"fmt"
	"github.com/georld/rld/daemon/overage"
	"slices"

	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/rules"
)

// pinsOf returns the home regions that rules name.
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

// warnPins says which rules name another home region than the layout in force has
// for them: that changes by command alone. There is nothing to say before there is
// a layout: the first one has what the rules name.
func (d *daemon) warnPins(set *rules.Set) {
	if d.strict == nil {
		return
	}
	pins, open := map[uint64]string{}, false
	d.strict.acceptor.do(func(r *quorum.Acceptor) {
		open = true
		for _, p := range r.Layout().Pins {
			pins[p.Rule] = p.Region
		}
	})
	for _, r := range set.Rules() {
		if !open || r.Limit == nil || !r.Limit.Homed() || r.Limit.HomeInRegion() || r.Limit.Home == pins[uint64(r.ID)] {
			continue
		}
		is := cmp.Or(pins[uint64(r.ID)], "none")
		do := fmt.Sprintf("rld strict home set %q %s", overage.RuleName(r), r.Limit.Home)
		if r.Limit.Home == "" {
			do = fmt.Sprintf("rld strict home unset %q, or write home: %s", overage.RuleName(r), is)
		}
		d.log.Warn("a rule names another home region than the layout in force, which changes by command alone",
			"event", "home_differs", "domain", r.Domain, "rule", r.Path, "at", r.Pos.String(),
			"named", cmp.Or(r.Limit.Home, "none"), "in_force", is, "hint", do)
	}
}
