package overage

import (
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/telemetry"
)

// BudgetStats returns the current metrics. See telemetry.Options.
func (m *Monitor) BudgetStats() telemetry.BudgetStats {
	at := m.Engine.Now()
	now := m.Engine.Time(at).Millis()
	members := m.daemons(at)
	m.mu.Lock()
	defer m.mu.Unlock()
	var out telemetry.BudgetStats
	type name struct{ domain, rule string }
	places := make(map[name]int)
	for _, f := range m.rules {
		r := telemetry.RuleBudget{
			Domain: f.rule.Domain, Rule: f.rule.Path, Bound: m.bound(f, members), Rights: f.gated,
		}
		r.Achieved, _ = f.achieved(now)
		if n, twice := places[name{r.Domain, r.Rule}]; twice { // export the worse of the two
			known := &out.Rules[n]
			known.Achieved, known.Bound = worse(known.Achieved, r.Achieved), worse(known.Bound, r.Bound)
			continue
		}
		places[name{r.Domain, r.Rule}] = len(out.Rules)
		if f.gated {
			m.setRights(f, &r, now)
		}
		out.Rules = append(out.Rules, r)
	}
	if m.Agent != nil {
		s := m.Agent.Status()
		out.Usable = &s.Holds
		out.Epochs = append(epochCounts("regions", s.Regions), epochCounts("daemons", s.Daemons)...)
	}
	return out
}

// worse returns the greater of two values, of which nil is unknown.
func worse(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// setRights sets the budget, the allotment and the weights of a rule.
func (m *Monitor) setRights(f *ruleLog, r *telemetry.RuleBudget, now int64) {
	r.Budget = budgetOf(f.rule.Limit).Ratio()
	total, x, carry := f.total(now)
	r.Held, _ = m.Agent.Allotment(f.id, total, x, carry, f.regional)
	for i, w := range m.weights(f) {
		r.Weights = append(r.Weights, telemetry.RegionWeight{Region: f.regions[i], Weight: w.Ratio()})
	}
}

func epochCounts(table string, all []agent.EpochStatus) []telemetry.EpochCount {
	settled := 0
	for _, e := range all {
		if e.Settled {
			settled++
		}
	}
	return []telemetry.EpochCount{
		{Table: table, State: "settled", Count: settled},
		{Table: table, State: "pending", Count: len(all) - settled},
	}
}
