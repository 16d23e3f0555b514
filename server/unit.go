package server

import "strconv"

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
