package overage

import (
	"time"

	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// RuleName returns the name of a rule in sentences: its domain and path.
func RuleName(r *rules.Rule) string { return r.Domain + ": " + r.Path }

// Names returns the names that operators may use for a rule with a limit: its
// path, its domain and path, and the name of its limit.
func Names(r *rules.Rule) []string {
	names := []string{r.Path, RuleName(r)}
	if r.Limit.Name != "" {
		names = append(names, r.Limit.Name)
	}
	return names
}

// UseOf returns the use of a rule, with its names only.
func UseOf(r *rules.Rule) *api.RuleUse {
	out := &api.RuleUse{Domain: r.Domain, Rule: r.Path}
	if r.Limit != nil {
		out.Name = r.Limit.Name
	}
	return out
}

// ScopeName returns the name of a scope in the limits language.
func ScopeName(s rules.Scope) string {
	return [...]string{"global", "region", "node"}[min(s, rules.NodeLocal)]
}

// UnixMs returns the time of Unix milliseconds, nil for 0.
func UnixMs(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	return new(time.UnixMilli(ms).UTC())
}

// EpochStates returns the JSON form of epochs.
func EpochStates(all []agent.EpochStatus) []api.EpochState {
	out := make([]api.EpochState, 0, len(all))
	for _, e := range all {
		s := api.EpochState{
			ID: e.ID, Settled: e.Settled, Since: UnixMs(e.Since), RuleWeights: e.Rules,
			WaitsFor: e.Missing, Unacknowledged: e.NoVote,
		}
		for _, m := range e.Members {
			s.Members = append(s.Members, api.EpochMember{Name: m.Name, Weight: m.Weight})
		}
		out = append(out, s)
	}
	return out
}
