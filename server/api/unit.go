package api

import (
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/rules"
)

// units pairs the units of the API, by number, with those of rules.
var units = [...]rules.Unit{
	rldv1.Unit_UNIT_UNSPECIFIED: rules.NoUnit,
	rldv1.Unit_SECOND:           rules.Second,
	rldv1.Unit_MINUTE:           rules.Minute,
	rldv1.Unit_HOUR:             rules.Hour,
	rldv1.Unit_DAY:              rules.Day,
	rldv1.Unit_WEEK:             rules.Week,
	rldv1.Unit_MONTH:            rules.Month,
	rldv1.Unit_YEAR:             rules.Year,
}

// unitOf returns the unit that a number of the API stands for, NoUnit when it
// stands for none.
func unitOf(n int32) rules.Unit {
	if n < 0 || int(n) >= len(units) {
		return rules.NoUnit
	}
	return units[n]
}

// protoUnit returns the unit as the API has it.
func protoUnit(u rules.Unit) rldv1.Unit {
	for n, have := range units {
		if have == u {
			return rldv1.Unit(n)
		}
	}
	return rldv1.Unit_UNIT_UNSPECIFIED
}
