package daemon

import (
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/telemetry"
)

// BudgetStats returns the numbers of now. See telemetry.Budgets.
func (m *monitor) BudgetStats() telemetry.BudgetStats {
	at := m.engine.Now()
	now := m.engine.Time(at).Millis()
	members := m.daemons(at)
	m.mu.Lock()
	defer m.mu.Unlock()
	var out telemetry.BudgetStats
	type name struct{ domain, rule string }
	places := make(map[name]int)
	for _, f := range m.follows {
		r := telemetry.RuleBudget{
			Domain: f.rule.Domain, Rule: f.rule.Path, Bound: m.bound(f, members), Rights: f.gated,
		}
		r.Achieved, _ = f.achieved(now)
		if n, twice := places[name{r.Domain, r.Rule}]; twice { // the worse of the two
			known := &out.Rules[n]
			known.Achieved, known.Bound = worse(known.Achieved, r.Achieved), worse(known.Bound, r.Bound)
			continue
		}
		places[name{r.Domain, r.Rule}] = len(out.Rules)
		if f.gated {
			m.holdings(f, &r, now)
		}
		out.Rules = append(out.Rules, r)
	}
	if m.agent != nil {
		s := m.agent.status()
		out.Epochs = append(epochCounts("regions", s.Regions), epochCounts("daemons", s.Daemons)...)
	}
	return out
}

// worse returns the greater of two, of which any may be unknown.
func worse(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// holdings fills in who holds what.
func (m *monitor) holdings(f *follow, r *telemetry.RuleBudget, now int64) {
	l := f.rule.Limit
	r.Budget = budgetOf(l).Ratio()
	x, carry := quota.Of(l).RightsWindow(now)
	total := l.Total()
	if quota.Of(l).Drains() {
		total = l.TotalBurst()
	}
	r.Held, _ = m.agent.Allotment(f.id, total, x, carry, f.regional)
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
