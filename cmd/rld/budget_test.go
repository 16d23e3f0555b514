package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// budgetHandler is the admin listener of a daemon with three rules: one
// bounded, one estimated, one in shadow mode of a region; an epoch is pending.
// Of login there is advice up to 1 % of false denials, of others none.
func budgetHandler() http.Handler {
	return admin.New(admin.Options{
		Metrics: http.NotFoundHandler(),
		Ready:   func() error { return nil },
		Rules:   func() string { return "" },
		Budget:  budgetAnswer,
	})
}

func budgetAnswer(q api.BudgetQuery) (api.BudgetAnswer, error) {
	since := time.Now().Add(-90 * time.Second)
	a := api.BudgetAnswer{
		Region: "us-east", Daemon: "us-0", Omitted: 4,
		Views: []api.RegionView{
			{Region: "eu-west", StalenessSeconds: new(0.2041)}, {Region: "us-east", StalenessSeconds: new(0.0512)}, {Region: "ap-south"},
		},
		Rights: &api.RightsState{
			Holds: true,
			Regions: []api.EpochState{
				{ID: "e0", Settled: true, Members: []api.EpochMember{{Name: "eu-west", Weight: 500_000}, {Name: "us-east", Weight: 500_000}}},
				{ID: "e1", Since: &since, RuleWeights: 2, WaitsFor: []string{"eu-west"}, Members: []api.EpochMember{
					{Name: "eu-west", Weight: 250_000}, {Name: "us-east", Weight: 750_000},
				}},
			},
			Daemons: []api.EpochState{{ID: "e0", Settled: true, Members: []api.EpochMember{{Name: "us-0", Weight: 1}}}},
		},
		Rules: []api.RuleBudget{
			{
				Domain: "edge", Rule: "path=/login", Name: "login", Algorithm: "fixed_window", Consistency: "eventual", Scope: "global",
				Placement: "spread", Limit: 6_000, WindowSeconds: 60, Budget: new(0.02), Bound: new(0.02), Bounded: true,
				Predicted: new(0.0104), Achieved: new(0.001), AchievedWorst: new(0.0123), FalseDenials: new(0.00004), Windows: 12, Gated: 11,
				Headroom: new(0.25), Held: 3_060,
				Regions: []api.RegionShare{
					{Region: "eu-west", Weight: new(0.5), Rights: new(uint64(3_060)), Admitted: 17},
					{Region: "us-east", Weight: new(0.5), Rights: new(uint64(3_060)), Admitted: 5},
				},
				Explanation: []string{"At worst this.", "Because of that.", "overage_budget moves it."},
				Recommended: "Static shares. Enough.", Alarms: []string{"us-east has not heard from eu-west for 9 s"},
			},
			{
				Domain: "edge", Rule: "user", Algorithm: "token_bucket", Consistency: "eventual", Scope: "global", Limit: 100, WindowSeconds: 0.5,
				Bound: new(1.0), Achieved: new(0.0), AchievedWorst: new(0.0), Regions: []api.RegionShare{{Region: "eu-west"}, {Region: "us-east", Admitted: 100}},
				Explanation: []string{"Two regions."},
			},
			{
				Domain: "edge", Rule: "org\x1b[31m", Algorithm: "fixed_window", Consistency: "partition", Scope: "region", Shadow: true,
				Placement: "spread", Limit: 10, WindowSeconds: 3600, Budget: new(0.0), Bounded: false, WhyNot: "left out of an epoch",
				Regions:     []api.RegionShare{{Region: "us-east", Weight: new(1.0), Rights: new(uint64(10))}},
				Explanation: []string{"Never."},
			},
		},
	}
	if q.Rule == "" {
		return a, nil
	}
	var found []api.RuleBudget
	for _, r := range a.Rules {
		if q.Rule == r.Name || q.Rule == r.Rule {
			if q.Target >= 0 {
				r.Advice = &api.Advice{Target: q.Target, Problem: "no overage_budget is enough"}
				if r.Name == "login" && q.Target <= 0.01 {
					r.Advice = &api.Advice{Target: q.Target, YAML: "overage_budget: 3%\nconsistency: eventual", Text: "3% at worst."}
				}
			}
			found = append(found, r)
		}
	}
	if a.Rules = found; len(found) == 0 {
		return a, &api.UnknownRuleError{Rule: q.Rule, Closest: "login"}
	}
	return a, nil
}

func TestPercentOf(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0%", -1: "0%", 0.00001: "<0.01%", 0.0123: "1.23%", 0.02: "2%", 0.1: "10%", 0.4567: "45.7%", 2: "200%",
	} {
		if got := percentOf(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

// TestBudgetTableOfHardlyAnything prints an answer with few facts: a missing
// fact is no reason to fail.
func TestBudgetTableOfHardlyAnything(t *testing.T) {
	for _, a := range []api.BudgetAnswer{
		{},
		{Rules: []api.RuleBudget{{}}},
		{Rules: []api.RuleBudget{{Advice: &api.Advice{}}}, Rights: &api.RightsState{Daemons: []api.EpochState{{}}}},
	} {
		for _, text := range []string{budgetTable(&a), explainText(&a), adviceText(&a)} {
			if strings.Contains(text, "NaN") || strings.Contains(text, "%!") {
				t.Errorf("%+v: %s", a, text)
			}
		}
	}
}

// The source of rights names the windows that have none.
func TestRightsSince(t *testing.T) {
	a := &api.BudgetAnswer{Rights: &api.RightsState{Holds: true}}
	if got := rightsText(a); !strings.Contains(got, "It has an allotment of rights.\n") {
		t.Error(got)
	}
	a.Rights.Since = new(time.Unix(1, 0).UTC())
	if got := rightsText(a); !strings.Contains(got, "start from 1970-01-01T00:00:01Z on") {
		t.Error(got)
	}
}
