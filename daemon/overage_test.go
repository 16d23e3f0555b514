package daemon

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/server/admin/api"
)

// monitored runs a monitor for each daemon of a world until the test ends.
func (w *world) monitored(regions ...string) map[string]*overage.Monitor {
	out := map[string]*overage.Monitor{}
	ctx, stop := context.WithCancel(context.Background())
	w.t.Cleanup(stop)
	for _, r := range w.residents {
		m := overage.New(overage.Config{Engine: r.engine, Region: r.region, Regions: regions})
		out[r.name] = m
		go m.Run(ctx)
	}
	return out
}

// ruleOf returns the overage of one rule.
func ruleOf(t *testing.T, m *overage.Monitor, name string) api.RuleBudget {
	t.Helper()
	a, err := m.Answer(api.BudgetQuery{Rule: name, Target: -1})
	if err != nil || len(a.Rules) != 1 {
		t.Fatalf("%s: got %d rules, %v", name, len(a.Rules), err)
	}
	return a.Rules[0]
}

// TestOverageOfAPartition lets each of two partitioned regions admit the whole
// limit, and requires both monitors to report it after the partition. Neither
// keeps a minute whose end it did not see.
func TestOverageOfAPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 60, 2, "us", "eu")
		w.within(10*time.Second, "all daemons are connected", w.whole)
		monitors := w.monitored("eu", "us")
		untilInto(5 * time.Second)
		w.isolate("eu")
		us, eu := w.in("us")[0], w.in("eu")[1]
		for range 60 {
			if !us.hits(1, "user", "x") || !eu.hits(1, "user", "x") {
				t.Fatal("denied within the limit")
			}
			us.hits(1, "user", "y") // less busy
			time.Sleep(50 * time.Millisecond)
		}
		eu.hits(1, "user", "x") // denied
		time.Sleep(time.Second)
		if r := ruleOf(t, monitors[us.name], "user"); *r.Achieved != 0 || *r.Bound != 1 || r.Bounded || r.Predicted != nil {
			t.Errorf("during the partition us reports %+v", r)
		}
		w.heal()
		w.within(20*time.Second, "all daemons are connected again", w.whole)
		time.Sleep(5 * time.Second)
		for _, r := range w.residents {
			got := ruleOf(t, monitors[r.name], "edge: user")
			if *got.Achieved != 1 || *got.AchievedWorst != 1 || got.Regions[0].Admitted != 60 || got.Regions[1].Admitted != 60 {
				t.Errorf("%s: after the partition %+v", r.name, got)
			}
		}
		untilInto(10 * time.Second)
		got := ruleOf(t, monitors[us.name], "user")
		if got.Windows != 1 || *got.Achieved != 0 || *got.AchievedWorst != 1 || got.Predicted == nil || got.Headroom == nil {
			t.Errorf("a minute later %+v", got)
		}
		for i, want := range []string{"At worst 2 regions admit 120 hits in a window of 60 s, 100% over", "100% over was the most seen", "overage_budget moves it"} {
			if !strings.Contains(got.Explanation[i], want) {
				t.Errorf("sentence %d is %q, want one with %q", i, got.Explanation[i], want)
			}
		}

		w.isolate("eu")
		us.hits(10, "user", "x")
		untilInto(20 * time.Second) // of the next minute
		if got := ruleOf(t, monitors[us.name], "user"); got.Windows != 1 {
			t.Errorf("a minute with an unknown end is kept: %d windows", got.Windows)
		}
		w.heal()
		w.within(40*time.Second, "all daemons are connected again", w.whole)
		us.hits(10, "user", "x")
		untilInto(20 * time.Second)
		if got := ruleOf(t, monitors[us.name], "user"); got.Windows != 2 {
			t.Errorf("the minute after the partition is not kept: %d windows", got.Windows)
		}
	})
}
