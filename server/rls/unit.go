package rls

import (
	"slices"

	"github.com/georld/rld/rules"
)

// units are the units by their numbers in Envoy's messages, which are not in
// the order of length. A limit override knows all but the last.
var units = [...]rules.Unit{
	rules.NoUnit, rules.Second, rules.Minute, rules.Hour, rules.Day, rules.Month, rules.Year, rules.Week,
}

// overrideUnitOf returns the unit of a limit override, which knows no week;
// NoUnit when it has none or an unknown one.
func overrideUnitOf(n int32) rules.Unit {
	if n < 0 || int(n) >= len(units)-1 {
		return rules.NoUnit
	}
	return units[n]
}

// limitUnit returns the number of a unit in RateLimitResponse.RateLimit.
func limitUnit(u rules.Unit) uint64 { return uint64(slices.Index(units[:], u)) }
