package server

import (
	"strconv"
	"time"

	"github.com/georld/rld/rules"
)

// The units of time that a limit override may name, for UnitProblem: those of
// the native API, and those of Envoy's enum, which has no week.
const (
	Units            = "SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR"
	UnitsWithoutWeek = "SECOND, MINUTE, HOUR, DAY, MONTH, YEAR"
)

// UnitProblem returns the fault of the unit of a limit override, in the same
// words on every edge: it is missing, 0, or unknown.
func UnitProblem(unit int32, known string) string {
	if unit == 0 {
		return "limit override without a unit; want one of " + known
	}
	return "limit override with the unknown unit " + strconv.Itoa(int(unit)) + "; want one of " + known
}

// Override returns the limit override of the native API, or its fault. Units
// have the same numbers there and in rules.
func Override(requests uint32, unit int32) (o rules.Override, problem string) {
	if unit <= int32(rules.NoUnit) || unit > int32(rules.Year) {
		return o, UnitProblem(unit, Units)
	}
	return rules.Override{Requests: requests, Unit: rules.Unit(unit)}, ""
}

// Seconds rounds up to whole seconds; a negative duration is 0.
func Seconds(d time.Duration) uint64 { return roundUp(d, time.Second) }

// Millis rounds up to whole milliseconds; a negative duration is 0.
func Millis(d time.Duration) uint64 { return roundUp(d, time.Millisecond) }

func roundUp(d, unit time.Duration) uint64 {
	return (uint64(max(d, 0)) + uint64(unit) - 1) / uint64(unit)
}
