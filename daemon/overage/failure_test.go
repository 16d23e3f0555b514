package overage

import (
	"strings"
	"testing"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/server/admin/api"
)

// TestRulesThatOnFailureOpens: a rule with on_failure: allow has no bound.
func TestRulesThatOnFailureOpens(t *testing.T) {
	set, found := limits.Parse([]limits.File{{Name: "l.yaml", Data: []byte(`
domain: d
defaults: {on_failure: allow}
descriptors:
  - {key: budget, rate_limit: {unit: minute, requests_per_unit: 50000, overage_budget: 10%}}
  - {key: partition, rate_limit: {unit: minute, requests_per_unit: 50000, consistency: partition}}
`)}}, limits.Options{Replicated: true, Regions: []string{"eu", "us"}, Replicas: 3})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	m, e := newFixture(t, set)
	m.sample(e.Now())
	for name, most := range map[string]string{"budget": "55,000", "partition": "50,000"} {
		r := m.ruleOf(t, name)
		if text := r.Explanation[0]; r.Bound != nil || r.Bounded || !strings.Contains(text, most) || !strings.Contains(text, "on_failure: allow") {
			t.Errorf("%s: bound %v, %q, want none and the sum of all rights", name, r.Bound, text)
		}
	}
}

// TestStrictRules: owners enforce strict rules, unless on_failure is allow.
func TestStrictRules(t *testing.T) {
	set, found := limits.Parse([]limits.File{{Name: "l.yaml", Data: []byte(`
domain: d
descriptors:
  - key: login
    rate_limit: {unit: minute, requests_per_unit: 5, consistency: strict}
  - key: open
    rate_limit: {unit: minute, requests_per_unit: 5, consistency: strict, on_failure: allow}
  - key: shadow
    rate_limit: {unit: minute, requests_per_unit: 5, consistency: strict}
    shadow_mode: true
`)}}, limits.Options{Replicated: true, Regions: []string{"eu", "us"}, Replicas: 3})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	m, e := newFixture(t, set)
	m.sample(e.Now())
	login, open, shadow := m.ruleOf(t, "login"), m.ruleOf(t, "open"), m.ruleOf(t, "shadow")
	if login.Bound == nil || *login.Bound != 0 || !login.Bounded || login.Placement != "owner" ||
		!strings.HasPrefix(login.Explanation[0], "No window of 60 s ever admits more than the limit of 5 hits") {
		t.Errorf("strict: %+v", login)
	}
	if open.Bound != nil || open.Bounded || !strings.Contains(open.Explanation[0], "on_failure: allow admits every hit") {
		t.Errorf("with on_failure: allow: %+v", open)
	}
	if shadow.Bound != nil || shadow.Bounded {
		t.Errorf("in shadow mode: %+v", shadow)
	}
	if s := m.BudgetStats(); *s.Rules[0].Bound != 0 || s.Rules[1].Bound != nil || s.Rules[2].Bound != nil {
		t.Errorf("metrics are of %+v", s.Rules)
	}
	a, err := m.Answer(api.BudgetQuery{Rule: "login", Target: 0.001})
	if err != nil || !strings.Contains(a.Rules[0].Advice.Problem, "a strict limit has no budget") {
		t.Errorf("advice %+v, error %v", a.Rules[0].Advice, err)
	}
}
