package importer

import (
	"fmt"
	"strings"
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
)

// Limit is a limit of a file, and the field of rld that would bound it.
type Limit struct {
	yamlpos.Position        // of the descriptor
	Domain           string `json:"domain"`
	Rule             string `json:"rule"`
	Name             string `json:"name,omitempty"`
	Limit            string `json:"limit"` // 500/second, or unlimited
	// Modes are shadow_mode, quota_mode, share_threshold and replaces NAME.
	Modes []string `json:"modes"`
	// Suggest is the line to add to the rate_limit, "" for none. Text explains
	// it, or the lack of it.
	Suggest string `json:"suggest,omitempty"`
	Text    string `json:"text"`
}

func newLimit(rule *rules.Rule, o *Options) Limit {
	l := rule.Limit
	out := Limit{
		Position: yamlpos.Position(rule.Pos), Domain: rule.Domain, Rule: rule.Path, Name: l.Name, Modes: []string{},
		Limit: fmt.Sprintf("%d/%v", l.Requests, l.Unit),
	}
	switch {
	case l.Unlimited:
		out.Limit = "unlimited"
	case l.Multiplier > 1:
		out.Limit = fmt.Sprintf("%d/%d %vs", l.Requests, l.Multiplier, l.Unit)
	}
	if l.Shadow {
		out.Modes = append(out.Modes, "shadow_mode")
	}
	if l.Quota {
		out.Modes = append(out.Modes, "quota_mode")
	}
	for _, p := range rule.Patterns {
		if p != "" {
			out.Modes = append(out.Modes, "share_threshold")
			break
		}
	}
	if len(l.Replaces) > 0 {
		out.Modes = append(out.Modes, "replaces "+few(l.Replaces))
	}
	out.Suggest, out.Text = suggestion(l, o)
	return out
}

// The suggested budgets: of long windows, and of those that are short for the
// age of views.
const (
	usualBudget = 2 * rules.Percent
	shortBudget = 10 * rules.Percent
)

// suggestion returns the field that bounds a limit, and its meaning.
func suggestion(l *rules.Limit, o *Options) (field, text string) {
	switch {
	case l.Unlimited:
		return "", "it admits all hits and counts none"
	case l.Shadow:
		return "", "it denies nothing, so no budget bounds it"
	case l.Requests == 0:
		return "", "it denies all hits, so nothing can exceed it"
	case !overage.SeesLate(l):
		return "", "it has fields of rld that bound it already, or is counted in one place"
	}
	window := time.Duration(l.Window()) * time.Millisecond
	lag := overage.Lag{WindowMs: l.Window(), AgeMs: o.Staleness.Milliseconds(), Regions: o.Regions}
	budget := usualBudget
	if lag.Short() {
		budget = shortBudget
	}
	over := uint64(l.Requests) * uint64(budget) / uint64(rules.Whole)
	field = fmt.Sprintf("overage_budget: %v", budget)
	bound := fmt.Sprintf("at most %s over in a window of %s", hits(over), length(window))
	without := fmt.Sprintf("up to %s without it", hits(uint64(o.Regions-1)*uint64(l.Requests)))
	switch {
	case o.Regions < 2 && over > 0:
		return field, bound + "; a daemon alone is exact without it, and others of its region know a hit after about 0.2s"
	case o.Regions < 2:
		return "", "a daemon alone is exact, and others of its region know a hit after about 0.2s"
	case over == 0 && lag.Short():
		return "", fmt.Sprintf("%v of it is less than a hit, and a window of %s is short for an owner in another region: %s over at most",
			budget, length(window), hits(uint64(o.Regions-1)*uint64(l.Requests)))
	case over == 0:
		return "consistency: strict", fmt.Sprintf("%v of it is less than a hit: strict is exact, and may wait for the owner of the key", budget)
	case lag.Short():
		return field, bound + ", and " + without + "; in so short a window, traffic that moves between regions is denied falsely"
	}
	return field, bound + ", and " + without + "; traffic that moves between regions may be denied falsely for a while"
}

func hits(n uint64) string {
	if n == 1 {
		return "1 hit"
	}
	return fmt.Sprintf("%d hits", n)
}

// length returns 1h for 1h0m0s.
func length(d time.Duration) string {
	s := strings.TrimSuffix(d.String(), "0s")
	if s == "" || !strings.HasSuffix(s, "m") {
		return d.String()
	}
	if h := strings.TrimSuffix(s, "0m"); strings.HasSuffix(h, "h") {
		return h
	}
	return s
}
