package overage

import (
	"fmt"

	"github.com/georld/rld/rules"
)

// Lag is how old the views of other regions are for a rule without rights.
type Lag struct {
	WindowMs, AgeMs int64
	Regions         int // that share the limit
}

// shortWindows is how many times the age of a view a window must last, so that
// regions learn of each other's hits in time for most loads.
const shortWindows = 4

// SeesLate reports whether regions count a limit together by their views alone:
// its windows may be short for these. Rights and owners do not depend on views,
// and buckets have no windows.
func SeesLate(l *rules.Limit) bool {
	return !l.Unlimited && l.Scope == rules.Global && l.Consistency == rules.Eventual && !l.HasRights() && !l.Algorithm.Bucket()
}

// Short reports whether windows are short for the age of the views: a load may
// use up the limit in each region before the others know of it.
func (l Lag) Short() bool { return l.Regions > 1 && l.AgeMs > 0 && shortWindows*l.AgeMs >= l.WindowMs }

// String describes what that means for the limit, and what to do.
func (l Lag) String() string {
	return fmt.Sprintf("windows of %s with views %s old: what is admitted in the first %s of a window is not known "+
		"in other regions yet, and a load that uses up the limit by then goes up to %s over; use overage_budget, "+
		"consistency: strict or longer windows",
		length(l.WindowMs), length(l.AgeMs), length(min(l.AgeMs, l.WindowMs)), pct(float64(l.Regions-1)))
}
