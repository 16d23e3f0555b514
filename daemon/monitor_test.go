package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// monitored starts a monitor on each daemon of a world, until the test ends.
func (w *world) monitored(regions ...string) map[string]*monitor {
	out := map[string]*monitor{}
	ctx, stop := context.WithCancel(context.Background())
	w.t.Cleanup(stop)
	for _, r := range w.residents {
		m := newMonitor(r.engine, nil, r.region, regions, false)
		out[r.name] = m
		go m.run(ctx)
	}
	return out
}

// rule asks a monitor about one rule.
func (m *monitor) ruleOf(t *testing.T, name string) api.RuleBudget {
	t.Helper()
	a, err := m.answer(api.BudgetQuery{Rule: name, Target: -1}, "test")
	if err != nil || len(a.Rules) != 1 {
		t.Fatalf("%s: got %d rules, %v", name, len(a.Rules), err)
	}
	return a.Rules[0]
}

// TestMonitorSeesWhatACutDoes: each of two regions admits a whole limit while
// they are cut from each other, and each monitor says so once they hear again. A
// minute whose end one of them did not see is not kept.
func TestMonitorSeesWhatACutDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 60, 2, "us", "eu")
		w.within(10*time.Second, "all are ready and hear all", w.whole)
		monitors := w.monitored("eu", "us")
		untilInto(5 * time.Second)
		w.isolate("eu")
		us, eu := w.in("us")[0], w.in("eu")[1]
		for range 60 {
			if !us.hits(1, "user", "x") || !eu.hits(1, "user", "x") {
				t.Fatal("the limit is not there")
			}
			us.hits(1, "user", "y") // who is less busy
			time.Sleep(50 * time.Millisecond)
		}
		eu.hits(1, "user", "x") // refused
		time.Sleep(time.Second)
		if r := monitors[us.name].ruleOf(t, "user"); *r.Achieved != 0 || *r.Bound != 1 || r.Bounded || r.Predicted != nil {
			t.Errorf("while it is cut off, us says %+v", r)
		}
		w.heal()
		w.within(20*time.Second, "all hear all again", w.whole)
		time.Sleep(5 * time.Second)
		for _, r := range w.residents {
			got := monitors[r.name].ruleOf(t, "edge: user")
			if *got.Achieved != 1 || *got.AchievedWorst != 1 || got.Regions[0].Admitted != 60 || got.Regions[1].Admitted != 60 {
				t.Errorf("%s: after the heal %+v", r.name, got)
			}
		}
		untilInto(10 * time.Second)
		got := monitors[us.name].ruleOf(t, "user")
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
		if got := monitors[us.name].ruleOf(t, "user"); got.Windows != 1 {
			t.Errorf("a minute whose end was not heard is kept: %d windows", got.Windows)
		}
		w.heal()
		w.within(40*time.Second, "all hear all again", w.whole)
		us.hits(10, "user", "x")
		untilInto(20 * time.Second)
		if got := monitors[us.name].ruleOf(t, "user"); got.Windows != 2 {
			t.Errorf("the minute after the heal is not kept: %d windows", got.Windows)
		}
	})
}

// parse returns rules.
func parse(t testing.TB, yaml string) *rules.Set {
	t.Helper()
	set, found := limits.Parse([]limits.File{{Name: "limits.yaml", Data: []byte(yaml)}}, limits.Options{})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return set
}

// firstRight is when the office of rightsOf starts, Unix ms.
const firstRight = 1_800_000_000_000

// rightsOf returns the office of a daemon of us that is there since the beginning,
// and its engine.
func rightsOf(t testing.TB, set *rules.Set) (*rightsLoop, *Engine) {
	t.Helper()
	o, err := agent.New(agent.Config{
		Region: "us", Name: "us-0", Regions: []agent.Region{{Name: "us", Weight: 3}, {Name: "eu", Weight: 1}}, Daemons: []string{"us-0"},
	}, agent.Start{First: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &rightsLoop{loop: replica.RightsLoop{Agent: o}, log: slog.New(slog.DiscardHandler), news: make(chan struct{}, 1)}
	nc := node.Default()
	nc.Region, nc.Name, nc.Allotments = "us", "us-0", f
	e, err := NewEngine(EngineConfig{Node: nc, Shards: 4, MaxKeys: 1_000, Seed: [2]uint64{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	e.SetRules(set, node.MatcherOptions{})
	f.rules(set)
	f.do(func(o *agent.Agent) {
		o.Peers(0, e.Incarnation(), []gossip.Peer{{ID: e.Incarnation(), Name: "us-0", Region: "us"}})
	})
	return f, e
}

// busyAt is what shards would say of a rule at an instant.
func busyAt(r *rules.Rule, window, count int64, us, eu uint64, refused node.Refused) *busyKey {
	return &busyKey{
		Busy:    node.Busy{Rule: r, Window: window, Length: r.Limit.Window(), Key: crdt.Key{Lo: 1}, Count: uint64(count), Refused: refused},
		regions: []node.RegionHits{{Region: "us", Hits: us}, {Region: "eu", Hits: eu}},
	}
}

const budgeted = `
domain: d
descriptors:
  - key: org
    rate_limit: {name: orgs, unit: minute, requests_per_unit: 100, overage_budget: 10%}
`

// TestMonitorOfABudget follows a rule with rights through labels: what was over,
// what the rights gate refused though there was room, whose weight is what.
func TestMonitorOfABudget(t *testing.T) {
	set := parse(t, budgeted)
	f, e := rightsOf(t, set)
	m := newMonitor(e, f, "us", []string{"eu", "us"}, false)
	m.take(set, firstRight)
	rule, now := set.Rules()[0], int64(firstRight)
	now -= now % 60_000
	for i := range 12 {
		start := now
		// 70 in us, and 20 refused for want of rights; late counts of eu.
		for j := range int64(10) {
			m.follows[0].see(m, busyAt(rule, start, 0, uint64(7*j+7), 0, node.Refused{}), start+j*1_000)
		}
		m.follows[0].see(m, busyAt(rule, start, 0, 70, 0, node.Refused{Rights: 20, Stranded: 20}), start+20_000)
		now = start + 60_000
		eu := uint64(20)
		if i == 11 {
			eu = 38 // 8 over
		}
		m.follows[0].see(m, busyAt(rule, start, 0, 70, eu, node.Refused{Rights: 20, Stranded: 20}), now+500)
		m.follows[0].settle(m, now+settleMs-1)
		if n := len(m.follows[0].windows); n != 1 {
			t.Fatalf("label %d: %d labels are open before it is settled", i, n)
		}
		m.follows[0].settle(m, now+settleMs)
	}
	out := m.describe(m.follows[0], 0.001, now+settleMs, 3, m.tallies()[m.follows[0].id])
	near := func(what string, got *float64, want float64) {
		t.Helper()
		if got == nil || math.Abs(*got-want) > 1e-4 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("the budget", out.Budget, 0.1)
	near("the bound", out.Bound, 0.1)
	near("the worst", out.AchievedWorst, 0.08)
	near("false denials", out.FalseDenials, 11*10/(11*100+100.)) // 10 fit in each but the last
	near("headroom", out.Headroom, 1-108/110.)
	near("the weight of eu", out.Regions[0].Weight, 0.25)
	near("the weight of us", out.Regions[1].Weight, 0.75)
	if !out.Bounded || out.Windows != 12 || out.Gated != 12 || *out.Achieved != 0 || out.Placement != "spread" {
		t.Errorf("got %+v", out)
	}
	if *out.Regions[0].Rights != 27 || *out.Regions[1].Rights != 82 {
		t.Errorf("rights of %d and %d, want 27 and 82 of 110", *out.Regions[0].Rights, *out.Regions[1].Rights)
	}
	if out.Advice == nil || out.Advice.Problem == "" == (out.Advice.YAML == "") {
		t.Errorf("advice is %+v", out.Advice)
	}

	// Another budget: the worst of the former one is gone, and a label that began
	// under that says nothing of this.
	m.follows[0].see(m, busyAt(rule, now, 0, 100, 50, node.Refused{}), now+5_000)
	other := parse(t, strings.Replace(budgeted, "10%", "20%", 1))
	m.take(other, now+6_000)
	m.follows[0].see(m, busyAt(other.Rules()[0], now, 0, 100, 50, node.Refused{}), now+7_000)
	if got := m.follows[0].worst(now + 7_000); got != 0 {
		t.Errorf("the worst under the new budget is %v", got)
	}
	m.follows[0].settle(m, now+62_000)
	if out := m.describe(m.follows[0], -1, now+62_000, 3, m.tallies()[m.follows[0].id]); out.Windows != 13 || out.Gated != 0 || out.Advice != nil {
		t.Errorf("after the change: %d windows, %d of them gated, %+v", out.Windows, out.Gated, out.Advice)
	}
}

func TestMonitorFollowsAThousandRules(t *testing.T) {
	m := newMonitor(nil, nil, "us", []string{"eu", "us"}, false)
	set := manyRules(t, maxFollowed+20)
	m.take(set, firstRight)
	if len(m.follows) != maxFollowed || m.leftOut != 20 {
		t.Errorf("%d followed and %d left out, want %d and 20", len(m.follows), m.leftOut, maxFollowed)
	}
	with := 0
	for _, f := range m.follows {
		if f.rule.Limit.HasRights() {
			with++
		}
		if f.rule.Limit.Scope == rules.NodeLocal {
			t.Errorf("%s is counted by each daemon for itself", f.rule.Path)
		}
	}
	if with != (maxFollowed+20)/10 {
		t.Errorf("%d of them have rights, want all %d", with, (maxFollowed+20)/10)
	}
	known := m.follows[5]
	m.take(manyRules(t, 100), firstRight)
	if len(m.follows) != 100 || m.follows[5] != known || m.leftOut != 0 {
		t.Errorf("after a reload %d are followed, %d left out; the same as before: %v", len(m.follows), m.leftOut, m.follows[5] == known)
	}
}

// manyRules returns n rules that daemons count together, a tenth of them with
// rights, and one that they do not.
func manyRules(t testing.TB, n int) *rules.Set {
	var b strings.Builder
	b.WriteString("domain: d\ndescriptors:\n  - key: own\n    rate_limit: {unit: minute, requests_per_unit: 9, scope: node}\n")
	for i := range n {
		extra := ""
		if i%10 == 9 {
			extra = ", overage_budget: 10%"
		}
		fmt.Fprintf(&b, "  - key: k%d\n    rate_limit: {unit: minute, requests_per_unit: 1000%s}\n", i, extra)
	}
	return parse(t, b.String())
}

func TestMonitorKnowsRulesByNameAndPath(t *testing.T) {
	set := parse(t, budgeted)
	f, e := rightsOf(t, set)
	m := newMonitor(e, f, "us", []string{"eu", "us"}, false)
	m.look(e.Now())
	for _, name := range []string{"orgs", "org", "d: org"} {
		if r := m.ruleOf(t, name); r.Name != "orgs" || len(r.Explanation) != 3 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	_, err := m.answer(api.BudgetQuery{Rule: "ords"}, "us-0")
	var unknown *api.UnknownRuleError
	if !errors.As(err, &unknown) || unknown.Closest != "orgs" {
		t.Errorf("got %v", err)
	}
	a, err := m.answer(api.BudgetQuery{Rule: "org", Target: 0.01}, "us-0")
	if err != nil || a.Rules[0].Advice == nil || !strings.Contains(a.Rules[0].Advice.Problem, "no window with traffic") {
		t.Errorf("advice before any traffic: %+v, %v", a.Rules, err)
	}
	if s := m.BudgetStats(); len(s.Rules) != 1 || s.Rules[0].Budget != 0.1 || len(s.Rules[0].Weights) != 2 || len(s.Epochs) != 4 {
		t.Errorf("metrics are of %+v", s)
	}
}

// TestMonitorOfLogsAndBuckets: what is known of them is less.
func TestMonitorOfLogsAndBuckets(t *testing.T) {
	set := parse(t, `
domain: d
descriptors:
  - key: log
    rate_limit: {unit: minute, requests_per_unit: 10, algorithm: sliding_log}
  - key: bucket
    rate_limit: {unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 40}
  - key: none
    rate_limit: {unit: second, requests_per_unit: 0}
  - key: here
    rate_limit: {unit: second, requests_per_unit: 40, scope: region}
`)
	_, e := rightsOf(t, set)
	m := newMonitor(e, nil, "us", []string{"eu", "us"}, false)
	m.look(e.Now())
	for _, tc := range []struct {
		rule, says string
		limit      uint64
		bound      float64
	}{
		{"log", "not told apart by region", 10, 1},
		{"bucket", "admit 160 hits in a window of 4 s, 100% over the limit of 80", 80, 1},
		{"none", "limit of 0 hits", 0, 1},
		{"here", "At worst each daemon of the region", 40, 0},
	} {
		if r := m.ruleOf(t, tc.rule); !strings.Contains(r.Explanation[0], tc.says) || r.Limit != tc.limit || *r.Bound != tc.bound {
			t.Errorf("%s: %+v, want %q", tc.rule, r, tc.says)
		}
	}
}

// TestMonitorSaysWhatNothingBounds: rules that refuse nothing, and counts that hold
// what was refused.
func TestMonitorSaysWhatNothingBounds(t *testing.T) {
	set := parse(t, `
domain: d
descriptors:
  - key: shadow
    rate_limit: {unit: minute, requests_per_unit: 100, overage_budget: 10%}
    shadow_mode: true
  - key: charged
    rate_limit: {unit: minute, requests_per_unit: 100, overage_budget: 10%, charge_denied: true}
`)
	f, e := rightsOf(t, set)
	for _, all := range []bool{false, true} {
		m := newMonitor(e, f, "us", []string{"eu", "us"}, all)
		m.look(e.Now())
		shadow, charged := m.ruleOf(t, "shadow"), m.ruleOf(t, "charged")
		if shadow.Bound != nil || shadow.Bounded || !shadow.Shadow || shadow.Achieved == nil {
			t.Errorf("in shadow mode: %+v", shadow)
		}
		if charged.Bounded == all || charged.Shadow != all || charged.Achieved != nil || charged.AchievedWorst != nil {
			t.Errorf("with charge_denied, the daemon in shadow mode: %v: %+v", all, charged)
		}
		s := m.BudgetStats()
		if s.Rules[0].Bound != nil || s.Rules[1].Achieved != nil || (s.Rules[1].Bound == nil) != all {
			t.Errorf("metrics are of %+v", s.Rules)
		}
	}
}

// Homes hold strict rules, unless on_failure does without them.
func TestMonitorOfStrictRules(t *testing.T) {
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
	f, e := rightsOf(t, set)
	m := newMonitor(e, f, "us", []string{"eu", "us"}, false)
	m.look(e.Now())
	login, open, shadow := m.ruleOf(t, "login"), m.ruleOf(t, "open"), m.ruleOf(t, "shadow")
	if login.Bound == nil || *login.Bound != 0 || !login.Bounded || login.Placement != "owner" ||
		!strings.HasPrefix(login.Explanation[0], "No window of 60 s ever admits more than the limit of 5 hits") {
		t.Errorf("strict: %+v", login)
	}
	if open.Bound != nil || open.Bounded || !strings.Contains(open.Explanation[0], "on_failure: allow lets all pass") {
		t.Errorf("with on_failure: allow: %+v", open)
	}
	if shadow.Bound != nil || shadow.Bounded {
		t.Errorf("in shadow mode: %+v", shadow)
	}
	if s := m.BudgetStats(); *s.Rules[0].Bound != 0 || s.Rules[1].Bound != nil || s.Rules[2].Bound != nil {
		t.Errorf("metrics are of %+v", s.Rules)
	}
	a, err := m.answer(api.BudgetQuery{Rule: "login", Target: 0.001}, "us-0")
	if err != nil || !strings.Contains(a.Rules[0].Advice.Problem, "a strict limit has no budget") {
		t.Errorf("advice %+v, error %v", a.Rules[0].Advice, err)
	}
}

func TestInterval(t *testing.T) {
	for ms, want := range map[int64]int64{-5: 100, 0: 100, 100: 100, 101: 200, 530: 800, 800: 800, 801: 1_600, 1 << 50: maxAgeMs} {
		got := interval(ms)
		if got != want {
			t.Errorf("%d ms is looked at in %d, want %d", ms, got, want)
		}
		if _, err := overage.NewEnvelope(got); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkMonitorLook is a look at 1,000 rules with traffic on 64 shards.
func BenchmarkMonitorLook(b *testing.B) {
	nc := node.Default()
	nc.Region, nc.Name = "us", "us-0"
	e, err := NewEngine(EngineConfig{Node: nc, Shards: 64, MaxKeys: 1_000_000, Seed: [2]uint64{1, 2}})
	if err != nil {
		b.Fatal(err)
	}
	set := manyRules(b, maxFollowed)
	e.SetRules(set, node.MatcherOptions{})
	for i := range 64_000 {
		c := node.Call{Domain: "d", Descriptors: []rules.Descriptor{descriptor(1, fmt.Sprint("k", i%maxFollowed), fmt.Sprint(i))}}
		if err := e.Check(context.Background(), &c); err != nil {
			b.Fatal(err)
		}
	}
	m := newMonitor(e, nil, "us", []string{"eu", "us"}, false)
	b.ReportAllocs()
	for b.Loop() {
		m.look(e.Now())
	}
}

// BenchmarkMonitorAnswer is a question about all of 1,000 rules, each with as many
// windows as are kept.
func BenchmarkMonitorAnswer(b *testing.B) {
	set := manyRules(b, maxFollowed)
	f, e := rightsOf(b, set)
	m := newMonitor(e, f, "us", []string{"eu", "us"}, false)
	m.look(e.Now())
	now := e.Time(e.Now()).Millis()
	for _, x := range m.follows {
		for i := int64(100); i > 0; i-- {
			start := now - now%60_000 - i*60_000
			x.see(m, busyAt(x.rule, start, 0, 700+uint64(i), 500, node.Refused{Rights: 30}), start+1_000)
			x.settle(m, start+70_000)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if a, err := m.answer(api.BudgetQuery{Target: -1}, "us-0"); err != nil || len(a.Rules) != maxFollowed || a.Rules[7].Windows != leastWindows {
			b.Fatal(err, len(a.Rules), a.Rules[7].Windows)
		}
	}
}
