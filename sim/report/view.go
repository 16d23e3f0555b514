package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/georld/rld/sim"
)

// Bounds on the charts. The tables and the JSON have everything.
const (
	maxCharts = 12  // rules with charts of their own
	maxFaults = 200 // rows of the time line
)

// verdict is the outcome of a run.
type verdict struct {
	Kind string // fine, liveness or correctness: a class of the style sheet
	Text string
}

func judge(r *sim.Result) verdict {
	switch r.Code() {
	case sim.ExitCorrectness:
		text := "Violated: " + strings.Join(r.Violated(), ", ")
		if r.Pending != "" {
			text += "; not done: " + r.Pending
		}
		return verdict{"correctness", text}
	case sim.ExitLiveness:
		return verdict{"liveness", "Not done: " + r.Pending}
	}
	if len(r.Auditors) == 0 {
		return verdict{"fine", "Ran without auditors"}
	}
	return verdict{"fine", "Fine: no auditor found anything"}
}

// chart is the charts of one rule.
type chart struct {
	Index  int // in the series
	Rule   string
	Limit  float64
	Window float64 // seconds, that Limit is for
	// Alone is true where one key was requested at a time, so that its limit
	// can be drawn beside the hits that the rule admitted. Else the limit is of
	// each of many.
	Alone  bool
	Result *sim.RuleResult
}

// charts returns the rules to draw, the busiest ones in the order of the
// series, and how many were left out.
func charts(r *sim.Result) (drawn []chart, leftOut int) {
	byRule := make(map[string]*sim.RuleResult, len(r.Rules))
	for i := range r.Rules {
		byRule[r.Rules[i].Rule] = &r.Rules[i]
	}
	for i, s := range r.Series.Rules {
		c := chart{Index: i, Rule: s.Rule, Limit: s.Limit, Window: s.WindowSeconds, Result: byRule[s.Rule]}
		if c.Result != nil && c.Window > 0 {
			n := float64(c.Result.Windows)
			c.Alone = n > 0 && n <= r.VirtualSeconds/c.Window+2
		}
		drawn = append(drawn, c)
	}
	if len(drawn) <= maxCharts {
		return drawn, 0
	}
	asked := func(c chart) uint64 {
		if c.Result == nil {
			return 0
		}
		return c.Result.Admitted + c.Result.Denied
	}
	leftOut = len(drawn) - maxCharts
	slices.SortStableFunc(drawn, func(a, b chart) int { return cmp.Compare(asked(b), asked(a)) })
	drawn = drawn[:maxCharts]
	slices.SortFunc(drawn, func(a, b chart) int { return cmp.Compare(a.Index, b.Index) })
	return drawn, leftOut
}

// fault is a row of the time line.
type fault struct {
	sim.FaultRecord
	Number      int
	Left, Width float64 // percent of the run
}

// faults returns the time line in the order of the series.
func faults(r *sim.Result) []fault {
	end := r.VirtualSeconds
	for _, f := range r.Series.Faults {
		end = max(end, f.To)
	}
	if end <= 0 {
		end = 1
	}
	var out []fault
	for i, f := range r.Series.Faults {
		if i == maxFaults {
			break
		}
		left := min(max(f.From/end*100, 0), 100)
		width := min(max((f.To-f.From)/end*100, 0), 100-left)
		out = append(out, fault{f, i + 1, left, width})
	}
	return out
}

// Instant reports whether a fault has no length.
func (f fault) Instant() bool { return f.To <= f.From }
