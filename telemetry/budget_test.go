package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/georld/rld/node"
)

// budgets is a Budgets with constant values.
type budgets BudgetStats

func (b budgets) BudgetStats() BudgetStats { return BudgetStats(b) }

func budgetMetrics(t *testing.T, b budgets, e *engine) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(newBudgetCollector(b.BudgetStats, e)); err != nil {
		t.Fatal(err)
	}
	return reg
}

func fullBudgets() budgets {
	return budgets{
		Rules: []RuleBudget{
			{Domain: "edge", Rule: "user", Achieved: new(0.5), Bound: new(2.0)},
			{Domain: "edge", Rule: "shadow"},
			{
				Domain: "edge", Rule: "org", Achieved: new(0.01), Bound: new(0.02), Rights: true, Budget: 0.02, Held: 17,
				Weights: []RegionWeight{{"eu-west", 0.25}, {"us-\xff", 0.75}},
			},
		},
		Usable: new(true),
		Epochs: []EpochCount{{"regions", "settled", 1}, {"daemons", "pending", 2}},
	}
}

func TestBudgetMetrics(t *testing.T) {
	e := &engine{}
	e.stats.Refusals[node.RightsGate], e.stats.Given, e.stats.Received = 3, 40, 50
	reg := budgetMetrics(t, fullBudgets(), e)
	got := ""
	for line := range strings.Lines(scrape(t, reg)) {
		if !strings.HasPrefix(line, "#") {
			got += line
		}
	}
	const want = `rld_epochs{state="pending",table="daemons"} 2
rld_epochs{state="settled",table="regions"} 1
rld_gate_denials_total{gate="both"} 0
rld_gate_denials_total{gate="estimate"} 0
rld_gate_denials_total{gate="failure"} 0
rld_gate_denials_total{gate="owner"} 0
rld_gate_denials_total{gate="rights"} 3
rld_overage_bound_ratio{domain="edge",rule="org"} 0.02
rld_overage_bound_ratio{domain="edge",rule="user"} 2
rld_overage_budget_ratio{domain="edge",rule="org"} 0.02
rld_overage_ratio{domain="edge",rule="org"} 0.01
rld_overage_ratio{domain="edge",rule="user"} 0.5
rld_rights_given_hits_total 40
rld_rights_held_hits{domain="edge",rule="org"} 17
rld_rights_received_hits_total 50
rld_rights_usable 1
rld_weight_ratio{domain="edge",region="eu-west",rule="org"} 0.25
rld_weight_ratio{domain="edge",region="us-?",rule="org"} 0.75
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// TestWeightsAreBounded has more weights than series.
func TestWeightsAreBounded(t *testing.T) {
	var b budgets
	for i := range 1_000 {
		r := RuleBudget{Domain: "d", Rule: fmt.Sprint(i), Rights: true}
		for j := range 64 {
			r.Weights = append(r.Weights, RegionWeight{fmt.Sprint("r", j), 1. / 64})
		}
		b.Rules = append(b.Rules, r)
	}
	n := strings.Count(scrape(t, budgetMetrics(t, b, &engine{})), "rld_weight_ratio{")
	if n == 0 || n > maxWeights {
		t.Errorf("%d series of weights, want at most %d", n, maxWeights)
	}
}
