package sim

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
)

// A policy without budgets gives out exactly the limit, whatever the budget
// that nodes ask for.
func TestPortionIsTheLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := rules.Limit{
			Requests: rapid.Uint32().Draw(rt, "requests"), HasBudget: rapid.Bool().Draw(rt, "budgeted"),
			Budget: rules.PPM(rapid.Uint32Range(0, 100_000_000).Draw(rt, "budget")),
		}
		for _, p := range Policies() {
			got, want := p.portion(l.Total(), &l), l.Total()
			if p.Plain() {
				want = uint64(l.Requests)
			}
			if got != want || p.Total(&l) != want {
				rt.Fatalf("%v of %+v: portion %d, total %d, want %d", p, l, got, p.Total(&l), want)
			}
		}
	})
}

func TestPolicyNames(t *testing.T) {
	for _, p := range Policies() {
		if got, err := PolicyNamed(p.String()); got != p || err != nil {
			t.Errorf("%v: %v, %v", p, got, err)
		}
	}
	if _, err := PolicyNamed("strict"); err == nil || !strings.Contains(err.Error(), "budgeted, naive") {
		t.Errorf("%v: want it to list all", err)
	}
}

// The same run under each policy: those with rights never exceed the sum of the
// rights, those without do.
func TestPoliciesSideBySide(t *testing.T) {
	needsMinutes(t)
	for _, p := range Policies() {
		cfg := hard(t, fixed)
		cfg.Policy = p
		cfg.Workloads = append(cfg.Workloads, cfg.Workloads[0])
		cfg.Workloads[0].Rate, cfg.Workloads[0].Regions = 50, []float64{9, 1}
		cfg.Workloads[1].Hot = 1
		cfg.Workloads[1].Pulse = &load.Pulse{Every: cfg.Duration / 4, Within: 20_000_000, Requests: 200}
		r, err := RunTwice(cfg, Options{Auditors: TestAuditors()})
		if err != nil {
			t.Fatal(err)
		}
		if r.Code() != ExitFine {
			t.Errorf("%v: %+v", p, violated(r))
		}
		if windows, worst := r.Exceeded(); p.HasRights() != (windows == 0) {
			t.Errorf("%v: exceeded in %d windows, by %g", p, windows, worst)
		}
		if r.Rights == nil || r.Rights.Policy != p.String() {
			t.Fatalf("%v: rights %+v", p, r.Rights)
		}
		gives := p == Budgeted || p == Partitioned
		if gives != (r.Rights.Given > 0) || p.HasRights() != (r.Rights.ByRights+r.Rights.ByBoth > 0) {
			t.Errorf("%v: %+v", p, *r.Rights)
		}
	}
}
