package demo

import (
	"fmt"
	"math"
	"time"

	"github.com/georld/rld/rules"
)

// Report is all there is to see at one instant, and a line of --json. Times
// are in seconds, shares in parts of 1.
type Report struct {
	// Regions lists the regions in order.
	Regions []string `json:"-"`
	// Seconds is for how long the clients have asked.
	Seconds float64 `json:"seconds"`
	// Done marks the last report.
	Done    bool          `json:"done,omitempty"`
	Traffic TrafficReport `json:"traffic"`
	Daemons DaemonsReport `json:"daemons"`
	// WAN is the network between the regions.
	WAN WANReport `json:"wan"`
	// Rules holds the admitted hits of each rule beside its limit.
	Rules []RuleReport `json:"rules"`
	// Staleness is the greatest age of the views of each pair of regions since
	// the report before; Ages holds the ages of all views since the start,
	// without unsent increments.
	Staleness []StalenessReport `json:"staleness"`
	Ages      Spans             `json:"age_seconds"`
	// KnownAfter is after how long a count was known elsewhere, while nothing
	// was cut, killed or started.
	KnownAfter Spans `json:"known_after_seconds"`
	// Convergence is the time that the daemons took to agree after the last
	// heal, null before one; Converging is true while one is under way.
	Convergence *float64 `json:"convergence_seconds"`
	Converging  bool     `json:"converging"`
	// Worst is the worst overage of each rule by its name; only in the last.
	Worst map[string]float64 `json:"worst_overage_ratio,omitempty"`
	// Notes lists the events and the replies to commands since the report
	// before.
	Notes []string `json:"notes,omitempty"`
}

// TrafficReport is what became of the asks since the start.
type TrafficReport struct {
	// PerSecond is how many were answered a second since the report before.
	PerSecond float64 `json:"per_second"`
	Asked     uint64  `json:"asked"`
	Admitted  uint64  `json:"admitted"`
	Denied    uint64  `json:"denied"`
	// Failed got no answer, also not from a neighbor. Unserved came from a
	// region in which no daemon ran. Left were not asked for want of time.
	Failed   uint64 `json:"failed"`
	Unserved uint64 `json:"unserved"`
	Left     uint64 `json:"omitted"`
}

// DaemonsReport counts the running daemons, and the members that they see,
// themselves included.
type DaemonsReport struct {
	Of       int `json:"of"`
	Up       int `json:"up"`
	Ready    int `json:"ready"`
	SeeLeast int `json:"see_least"`
	SeeMost  int `json:"see_most"`
	// Ghosts is how many that do not run any more are seen at most.
	Ghosts int `json:"ghosts"`
}

// WANReport is the network. A part is a set of regions that reach each other.
type WANReport struct {
	Profile string      `json:"profile"`
	Parts   [][]string  `json:"parts"`
	Cuts    [][2]string `json:"cuts"`
}

// RuleReport is one rule: the running window of its fullest key, and the totals
// since the start.
type RuleReport struct {
	Rule   string `json:"rule"`
	Window int    `json:"window_seconds"`
	RuleRow
	// Bound is the greatest possible overage: the budget, or without one the
	// overage when each region admits a whole limit. SinceBudget is the worst
	// overage of the windows that began under the present budget, null without
	// one.
	Bound       float64  `json:"overage_bound_ratio"`
	Budget      *float64 `json:"overage_budget_ratio"`
	SinceBudget *float64 `json:"worst_since_budget_ratio"`
	// Strict is true for a rule that never exceeds its limit, whatever fails.
	Strict bool `json:"strict"`
}

// shown is the worst overage to display: since the budget, where there is one.
func (r *RuleReport) shown() float64 {
	if r.SinceBudget != nil {
		return *r.SinceBudget
	}
	return r.Worst
}

// fullest describes the fullest window of a strict rule, such as "5 of 5".
func (r *RuleReport) fullest() string { return fmt.Sprintf("%d of %d", r.Most, r.MostOf) }

// windowName is what people call a window.
func (r *RuleReport) windowName() string {
	switch time.Duration(r.Window) * time.Second {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	}
	return fmt.Sprintf("%d s", r.Window)
}

// boundText is the bound, in brackets where only the number of regions is one.
func (r *RuleReport) boundText() string {
	text := fmt.Sprintf("%g%%", math.Round(r.Bound*1000)/10)
	if r.Budget == nil && !r.Strict {
		return "(" + text + ")"
	}
	return text
}

// StalenessReport is the greatest age of the view that In has of Of, -1 without
// a view or without a running daemon.
type StalenessReport struct {
	In      string  `json:"in"`
	Of      string  `json:"of"`
	Seconds float64 `json:"seconds"`
}

// Spans is times in one region and across regions.
type Spans struct {
	InRegion Quantiles `json:"in_region"`
	Across   Quantiles `json:"across"`
}

// Quantiles is the middle and the 99th percentile of some samples, 0 without
// any.
type Quantiles struct {
	Samples int64   `json:"samples"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
}

// seconds writes a time to the millisecond; -1 ns stands for never and is -1.
func seconds(d time.Duration) float64 {
	if d < 0 {
		return -1
	}
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}

// report looks at everything. Notes and the rate since the report before are
// for the caller to add.
func (s *show) report(now time.Time) *Report {
	r := &Report{Regions: s.o.Regions, Seconds: seconds(now.Sub(s.began))}
	r.Traffic = TrafficReport{
		Asked: s.clients.counts.asked.Load(), Failed: s.clients.counts.failed.Load(),
		Unserved: s.clients.counts.unserved.Load(), Left: s.clients.counts.left.Load(),
	}
	r.Daemons, _ = s.cluster.members()
	r.WAN = WANReport{Profile: string(s.o.WAN), Parts: s.wan.Parts(), Cuts: s.wan.Cuts()}
	s.addRules(r, now)
	ages := s.ages.take()
	for i, in := range s.o.Regions {
		for j, of := range s.o.Regions {
			if age, ok := ages[[2]int{i, j}]; ok {
				r.Staleness = append(r.Staleness, StalenessReport{in, of, seconds(age)})
			} else if i != j || s.o.Daemons > 1 {
				r.Staleness = append(r.Staleness, StalenessReport{in, of, -1})
			}
		}
	}
	r.Ages, r.KnownAfter = s.ages.known(), s.marks.known()
	took, underWay := s.marks.convergence()
	if took >= 0 {
		r.Convergence = new(seconds(took))
	}
	r.Converging = underWay
	return r
}

func (s *show) addRules(r *Report, now time.Time) {
	all := s.cluster.limits.Rules()
	for i, row := range s.ledger.Rows(now) {
		rule := RuleReport{Rule: all[i].Name, Window: all[i].Window, Strict: all[i].Strict, RuleRow: row}
		if rule.MostOf == 0 {
			rule.MostOf = rule.Limit
		}
		if !rule.Strict {
			rule.Bound = float64(len(s.o.Regions) - 1)
		}
		if all[i].HasBudget {
			share := float64(all[i].Budget) / float64(rules.Whole)
			rule.Bound, rule.Budget, rule.SinceBudget = share, &share, &row.SinceBudget
		}
		r.Rules = append(r.Rules, rule)
		r.Traffic.Admitted += row.Passed
		r.Traffic.Denied += row.Denied
	}
}
