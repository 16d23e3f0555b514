package demo

import (
	"fmt"
	"time"

	"github.com/georld/rld/rules"
)

// Report is all there is to see at one instant, and a line of --json. Times
// are in seconds, shares in parts of 1.
type Report struct {
	// Seconds is for how long the clients have asked.
	Seconds float64 `json:"seconds"`
	// Done marks the last report.
	Done    bool          `json:"done,omitempty"`
	Traffic TrafficReport `json:"traffic"`
	Daemons DaemonsReport `json:"daemons"`
	// WAN is the network between the regions.
	WAN WANReport `json:"wan"`
	// Rules is what was admitted against the limits.
	Rules []RuleReport `json:"rules"`
	// Staleness is how old what is known is, for each two regions, at most
	// since the report before; Ages is that of all views since the start,
	// without what had not been sent.
	Staleness []StalenessReport `json:"staleness"`
	Ages      Spans             `json:"age_seconds"`
	// KnownAfter is after how long a count was known elsewhere, while nothing
	// was cut, killed or started.
	KnownAfter Spans `json:"known_after_seconds"`
	// Convergence is how long the daemons took to agree after the last heal,
	// null before one; Converging says that one is under way.
	Convergence *float64 `json:"convergence_seconds"`
	Converging  bool     `json:"converging"`
	// Worst is the worst overage of each rule by its name; only in the last.
	Worst map[string]float64 `json:"worst_overage_ratio,omitempty"`
	// Notes is what happened since the report before, and what commands said.
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

// DaemonsReport is who runs, and how many of those the daemons that run see,
// themselves too.
type DaemonsReport struct {
	Of       int `json:"of"`
	Up       int `json:"up"`
	Ready    int `json:"ready"`
	SeeLeast int `json:"see_least"`
	SeeMost  int `json:"see_most"`
	// Ghosts is how many that do not run any more are seen at most.
	Ghosts int `json:"ghosts"`
}

// WANReport is the network. A part is regions that hear each other.
type WANReport struct {
	Profile string      `json:"profile"`
	Parts   [][]string  `json:"parts"`
	Cuts    [][2]string `json:"cuts"`
}

// RuleReport is one rule: the running window of that of its keys which was
// granted most, and what it comes to since the start.
type RuleReport struct {
	Rule     string            `json:"rule"`
	Key      string            `json:"key"`
	Limit    uint64            `json:"limit"`
	Window   int               `json:"window_seconds"`
	Admitted []RegionAmount    `json:"-"`
	ByRegion map[string]uint64 `json:"admitted"`
	Total    uint64            `json:"total"`
	Over     float64           `json:"overage_ratio"`
	Worst    float64           `json:"worst_overage_ratio"`
	// Bound is what the overage cannot exceed: the budget, and without one what
	// regions come to that each admit a whole limit. SinceBudget is the worst
	// overage of the windows that began under the present budget, null without.
	Bound       float64  `json:"overage_bound_ratio"`
	Budget      *float64 `json:"overage_budget_ratio"`
	SinceBudget *float64 `json:"worst_since_budget_ratio"`
	// Strict says that a rule never admits more, whatever is cut or killed. Most is
	// what the fullest window of any key admitted since the start, of MostOf that it
	// might; Full is how many windows of keys admitted all that they might.
	Strict bool   `json:"strict"`
	Most   uint64 `json:"most_in_a_window"`
	MostOf uint64 `json:"most_of"`
	Full   int    `json:"full_windows"`
	Passed uint64 `json:"passed_since_start"`
	Denied uint64 `json:"denied_since_start"`
}

// shown is the worst overage that people are told of: since the budget, where
// there is one.
func (r *RuleReport) shown() float64 {
	if r.SinceBudget != nil {
		return *r.SinceBudget
	}
	return r.Worst
}

// fullest says what the fullest window of a strict rule came to, such as "5 of 5".
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
	text := trimZeros(fmt.Sprintf("%.1f", r.Bound*100)) + "%"
	if r.Budget == nil && !r.Strict {
		return "(" + text + ")"
	}
	return text
}

// RegionAmount is what one region admitted.
type RegionAmount struct {
	Region string
	Amount uint64
}

// StalenessReport is how old what In knows of Of is at most, -1 when nothing
// was ever heard or nobody runs there.
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
	r := &Report{Seconds: seconds(now.Sub(s.began))}
	r.Traffic = TrafficReport{
		Asked: s.clients.counts.asked.Load(), Failed: s.clients.counts.failed.Load(),
		Unserved: s.clients.counts.unserved.Load(), Left: s.clients.counts.left.Load(),
	}
	r.Daemons = s.daemons()
	r.WAN = WANReport{Profile: string(s.o.WAN), Parts: s.wan.Parts(), Cuts: s.wan.Cuts()}
	s.addRules(r, now)
	for i, ages := range s.ages.take() {
		for j, age := range ages {
			if i != j || s.o.Daemons > 1 {
				r.Staleness = append(r.Staleness, StalenessReport{s.o.Regions[i], s.o.Regions[j], seconds(age)})
			}
		}
	}
	r.Ages.InRegion, r.Ages.Across = s.ages.known()
	r.KnownAfter.InRegion, r.KnownAfter.Across = s.marks.known()
	took, underWay := s.marks.convergence()
	if took >= 0 {
		v := seconds(took)
		r.Convergence = &v
	}
	r.Converging = underWay
	return r
}

func (s *show) daemons() DaemonsReport {
	out := DaemonsReport{Of: len(s.cluster.all)}
	for i, sight := range s.cluster.sights() {
		out.Up++
		if sight.ready {
			out.Ready++
		}
		if i == 0 {
			out.SeeLeast = sight.sees
		}
		out.Ghosts = max(out.Ghosts, sight.ghosts)
		out.SeeLeast, out.SeeMost = min(out.SeeLeast, sight.sees), max(out.SeeMost, sight.sees)
	}
	return out
}

func (s *show) addRules(r *Report, now time.Time) {
	all := s.cluster.limits.Rules()
	for i, row := range s.ledger.Rows(now) {
		if i == markRule {
			continue
		}
		rule := RuleReport{
			Rule: all[i].Name, Key: keyName(i, row.Key), Limit: row.Limit, Window: all[i].Window,
			ByRegion: make(map[string]uint64), Total: row.Total, Over: row.Over, Worst: row.Worst,
			Strict: all[i].Strict, Most: row.Most, MostOf: row.MostOf, Full: row.Full,
			Passed: row.Passed, Denied: row.Denied,
		}
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
		for j, n := range row.Admitted {
			rule.Admitted = append(rule.Admitted, RegionAmount{s.o.Regions[j], n})
			rule.ByRegion[s.o.Regions[j]] = n
		}
		r.Rules = append(r.Rules, rule)
		r.Traffic.Admitted += row.Passed
		r.Traffic.Denied += row.Denied
	}
}
