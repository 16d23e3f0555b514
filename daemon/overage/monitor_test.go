package overage

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// parse returns the rules of limits.
func parse(t testing.TB, yaml string) *rules.Set {
	t.Helper()
	set, found := limits.Parse([]limits.File{{Name: "limits.yaml", Data: []byte(yaml)}}, limits.Options{})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return set
}

// firstRight is when the agent of newFixture starts, in Unix milliseconds.
const firstRight = 1_800_000_000_000

// engine is an Engine with one shard.
type engine struct {
	*node.Node
	set     *rules.Set
	started time.Time
	matcher *node.Matcher
}

func (e *engine) Now() node.Instant {
	return node.Instant{Mono: time.Since(e.started), Wall: time.Now().UnixNano()}
}

func (e *engine) Rules() *rules.Set { return e.set }

func (e *engine) Links(at node.Instant) []node.Link { return slices.Collect(e.Node.Links(at)) }

func (e *engine) Tallies(yield func(domain, rule string, t quota.Tally)) {
	e.Node.Tallies(func(r *rules.Rule, t quota.Tally) {
		if r != nil {
			yield(r.Domain, r.Path, t)
		}
	})
}

func (e *engine) BusyKeys(at node.Instant, set *rules.Set, to *BusyKeys) {
	if set != e.set {
		return
	}
	e.Busiest(at, func(k *node.Busy) { to.Add(k, 0) })
	to.Admitted(func(hits []node.RegionHits, k *BusyKey) []node.RegionHits { return e.Node.Admitted(hits, &k.Busy) })
}

// check decides a call of one hit.
func (e *engine) check(t testing.TB, key, value string) {
	c := node.Call{Domain: "d", Descriptors: []rules.Descriptor{{Hits: 1, Entries: []rules.Entry{{Key: key, Value: value}}}}}
	if err := e.matcher.Resolve(&c); err != nil {
		t.Fatal(err)
	}
	at := e.Now()
	e.Probe(at, c.Hits(), c.Statuses)
	e.matcher.Decide(&c)
	e.Charge(at, c.Hits(), c.Statuses)
}

// newEngine returns an engine with rules.
func newEngine(t testing.TB, set *rules.Set, a node.Allotments) *engine {
	t.Helper()
	c := node.Default()
	c.Region, c.Name, c.Allotments, c.Shards, c.MaxKeys = "us", "us-0", a, 1, 100_000
	n, err := node.New(c, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{Node: n, set: set, started: time.Now(), matcher: node.NewMatcher(set, rules.NewHasher([rules.SecretBytes]byte{}), node.MatcherOptions{})}
	n.SetRules(e.Now(), set)
	return e
}

// newFixture returns a monitor of a daemon of us whose agent exists since the
// first start of the cluster.
func newFixture(t testing.TB, set *rules.Set) (*Monitor, *engine) {
	t.Helper()
	a, err := agent.New(agent.Config{
		Region: "us", Name: "us-0", Self: 11, Generation: 1, Founders: []uint64{11},
		Genesis: []agent.Region{{Name: "us", ID: 1, Weight: 3}, {Name: "eu", ID: 2, Weight: 1}},
	}, agent.Start{Found: true})
	if err != nil {
		t.Fatal(err)
	}
	a.Confirm()
	e := newEngine(t, set, a)
	a.Rules(replica.RightsRules(set))
	a.Peers(0, e.Incarnation(), []gossip.Peer{{ID: e.Incarnation(), Name: "us-0", Region: "us"}})
	return New(Config{Engine: e, Agent: plainAgent{a}, Region: "us", Regions: []string{"eu", "us"}}), e
}

// plainAgent gives reasons as they are.
type plainAgent struct{ *agent.Agent }

func (plainAgent) WhyNot(why epoch.Reason) string { return why.String() }

// alone returns a monitor without an agent.
func alone(e Engine) *Monitor {
	return New(Config{Engine: e, Region: "us", Regions: []string{"eu", "us"}})
}

// ruleOf returns the overage of one rule.
func (m *Monitor) ruleOf(t *testing.T, name string) api.RuleBudget {
	t.Helper()
	a, err := m.Answer(api.BudgetQuery{Rule: name, Target: -1})
	if err != nil || len(a.Rules) != 1 {
		t.Fatalf("%s: got %d rules, %v", name, len(a.Rules), err)
	}
	return a.Rules[0]
}

// TestRegionsOfTheCluster follows the regions that the cluster has: they come
// and go without new settings.
func TestRegionsOfTheCluster(t *testing.T) {
	m, _ := newFixture(t, parse(t, "{domain: d, descriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 100, overage_budget: 10%}}]}"))
	var now []string
	m.Cluster = func() []string { return now }
	for _, tt := range []struct{ now, want []string }{
		{nil, []string{"eu", "us"}}, // there is no record yet
		{[]string{"ap", "eu", "us"}, []string{"ap", "eu", "us"}},
		{[]string{"ap", "us"}, []string{"ap", "us"}},
		{[]string{"ap", "eu"}, []string{"ap", "us"}}, // this one was removed
	} {
		now = tt.now
		a, err := m.Answer(api.BudgetQuery{Target: -1})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range a.Views {
			got = append(got, v.Region)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("with %v: %v, want %v", tt.now, got, tt.want)
		}
	}
}

// busyAt returns the busiest key of a rule at an instant.
func busyAt(r *rules.Rule, window, count int64, us, eu uint64, refused node.Denied) *BusyKey {
	return &BusyKey{
		Busy:    node.Busy{Rule: r, Window: window, Length: r.Limit.Window(), Key: 1, Count: uint64(count), Denied: refused},
		Regions: []node.RegionHits{{Region: "us", Hits: us}, {Region: "eu", Hits: eu}},
	}
}

const budgeted = `
domain: d
descriptors:
  - key: org
    rate_limit: {name: orgs, unit: minute, requests_per_unit: 100, overage_budget: 10%}
`

// TestRuleWithABudget observes a rule with rights in some windows: its overage,
// its false denials, and the weights of the regions.
func TestRuleWithABudget(t *testing.T) {
	set := parse(t, budgeted)
	m, _ := newFixture(t, set)
	m.setRules(set, firstRight)
	rule, now := set.Rules()[0], int64(firstRight)
	now -= now % 60_000
	for i := range 12 {
		start := now
		// 70 in us, 20 denied without rights, and late counts of eu.
		for j := range int64(10) {
			m.rules[0].observe(m, busyAt(rule, start, 0, uint64(7*j+7), 0, node.Denied{}), start+j*1_000)
		}
		m.rules[0].observe(m, busyAt(rule, start, 0, 70, 0, node.Denied{Rights: 20, Stranded: 20}), start+20_000)
		now = start + 60_000
		eu := uint64(20)
		if i == 11 {
			eu = 38 // 8 over
		}
		m.rules[0].observe(m, busyAt(rule, start, 0, 70, eu, node.Denied{Rights: 20, Stranded: 20}), now+500)
		m.rules[0].settle(m, now+settleMs-1)
		if n := len(m.rules[0].windows); n != 1 {
			t.Fatalf("window %d: %d windows are open before it is settled", i, n)
		}
		m.rules[0].settle(m, now+settleMs)
	}
	out := m.describe(m.rules[0], 0.001, now+settleMs, 3, m.tallies()[m.rules[0].id])
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

	// After a change of the budget the former worst overage does not count, nor
	// does a window that started before.
	m.rules[0].observe(m, busyAt(rule, now, 0, 100, 50, node.Denied{}), now+5_000)
	other := parse(t, strings.Replace(budgeted, "10%", "20%", 1))
	m.setRules(other, now+6_000)
	m.rules[0].observe(m, busyAt(other.Rules()[0], now, 0, 100, 50, node.Denied{}), now+7_000)
	if got := m.rules[0].worst(now + 7_000); got != 0 {
		t.Errorf("the worst under the new budget is %v", got)
	}
	m.rules[0].settle(m, now+62_000)
	if out := m.describe(m.rules[0], -1, now+62_000, 3, m.tallies()[m.rules[0].id]); out.Windows != 13 || out.Gated != 0 || out.Advice != nil {
		t.Errorf("after the change: %d windows, %d of them gated, %+v", out.Windows, out.Gated, out.Advice)
	}
}

func TestManyRules(t *testing.T) {
	m := alone(nil)
	set := manyRules(t, maxRules+20)
	m.setRules(set, firstRight)
	if len(m.rules) != maxRules || m.omitted != 20 {
		t.Errorf("%d observed and %d omitted, want %d and 20", len(m.rules), m.omitted, maxRules)
	}
	with := 0
	for _, f := range m.rules {
		if f.rule.Limit.HasRights() {
			with++
		}
		if f.rule.Limit.Scope == rules.NodeLocal {
			t.Errorf("%s counts at each daemon alone", f.rule.Path)
		}
	}
	if with != (maxRules+20)/10 {
		t.Errorf("%d of them have rights, want all %d", with, (maxRules+20)/10)
	}
	known := m.rules[5]
	m.setRules(manyRules(t, 100), firstRight)
	if len(m.rules) != 100 || m.rules[5] != known || m.omitted != 0 {
		t.Errorf("after a reload %d observed, %d omitted, the history kept: %v", len(m.rules), m.omitted, m.rules[5] == known)
	}
}

// manyRules returns n rules that daemons count together, a tenth of them with
// rights, and one that counts at each daemon alone.
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

func TestRulesByNameAndPath(t *testing.T) {
	set := parse(t, budgeted)
	m, e := newFixture(t, set)
	m.sample(e.Now())
	for _, name := range []string{"orgs", "org", "d: org"} {
		if r := m.ruleOf(t, name); r.Name != "orgs" || len(r.Explanation) != 3 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	_, err := m.Answer(api.BudgetQuery{Rule: "ords"})
	var unknown *api.UnknownRuleError
	if !errors.As(err, &unknown) || unknown.Closest != "orgs" {
		t.Errorf("got %v", err)
	}
	a, err := m.Answer(api.BudgetQuery{Rule: "org", Target: 0.01})
	if err != nil || a.Rules[0].Advice == nil || !strings.Contains(a.Rules[0].Advice.Problem, "no window with traffic") {
		t.Errorf("advice before any traffic: %+v, %v", a.Rules, err)
	}
	if s := m.BudgetStats(); len(s.Rules) != 1 || s.Rules[0].Budget != 0.1 || len(s.Rules[0].Weights) != 2 || len(s.Epochs) != 4 {
		t.Errorf("metrics are of %+v", s)
	}
}

func TestLogsAndBuckets(t *testing.T) {
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
	e := newEngine(t, set, nil)
	m := alone(e)
	m.sample(e.Now())
	for _, tc := range []struct {
		rule, says string
		limit      uint64
		bound      float64
	}{
		{"log", "not known by region", 10, 1},
		{"bucket", "admit 160 hits in a window of 4 s, 100% over the limit of 80", 80, 1},
		{"none", "limit of 0 hits", 0, 1},
		{"here", "At worst each daemon of the region", 40, 0},
	} {
		if r := m.ruleOf(t, tc.rule); !strings.Contains(r.Explanation[0], tc.says) || r.Limit != tc.limit || *r.Bound != tc.bound {
			t.Errorf("%s: %+v, want %q", tc.rule, r, tc.says)
		}
	}
}

// TestShadowAndChargeDenied observes rules that deny nothing, and counts that
// include denied hits.
func TestShadowAndChargeDenied(t *testing.T) {
	set := parse(t, `
domain: d
descriptors:
  - key: shadow
    rate_limit: {unit: minute, requests_per_unit: 100, overage_budget: 10%}
    shadow_mode: true
  - key: charged
    rate_limit: {unit: minute, requests_per_unit: 100, overage_budget: 10%, charge_denied: true}
`)
	for _, all := range []bool{false, true} {
		m, e := newFixture(t, set)
		m.Shadow = all
		m.sample(e.Now())
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

func TestInterval(t *testing.T) {
	for ms, want := range map[int64]int64{-5: 100, 0: 100, 100: 100, 101: 200, 530: 800, 800: 800, 801: 1_600, 1 << 50: maxAgeMs} {
		got := interval(ms)
		if got != want {
			t.Errorf("interval of %d ms is %d, want %d", ms, got, want)
		}
	}
}

// BenchmarkSample samples 1,000 rules with traffic.
func BenchmarkSample(b *testing.B) {
	set := manyRules(b, maxRules)
	e := newEngine(b, set, nil)
	for i := range 64_000 {
		e.check(b, fmt.Sprint("k", i%maxRules), fmt.Sprint(i))
	}
	m := alone(e)
	b.ReportAllocs()
	for b.Loop() {
		m.sample(e.Now())
	}
}

// BenchmarkAnswer describes 1,000 rules with full histories.
func BenchmarkAnswer(b *testing.B) {
	set := manyRules(b, maxRules)
	m, e := newFixture(b, set)
	m.sample(e.Now())
	now := e.Time(e.Now()).Millis()
	for _, x := range m.rules {
		for i := int64(100); i > 0; i-- {
			start := now - now%60_000 - i*60_000
			x.observe(m, busyAt(x.rule, start, 0, 700+uint64(i), 500, node.Denied{Rights: 30}), start+1_000)
			x.settle(m, start+70_000)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if a, err := m.Answer(api.BudgetQuery{Target: -1}); err != nil || len(a.Rules) != maxRules || a.Rules[7].Windows != minHistory {
			b.Fatal(err, len(a.Rules), a.Rules[7].Windows)
		}
	}
}

// TestShortWindows warns once of each rule without rights whose windows are
// short for the age of the views, and again when its limit changes.
func TestShortWindows(t *testing.T) {
	limit := func(requests int) *rules.Set {
		return parse(t, fmt.Sprintf(`
domain: d
descriptors:
  - key: second
    rate_limit: {unit: second, requests_per_unit: %d}
  - key: minute
    rate_limit: {unit: minute, requests_per_unit: 10}
  - key: budget
    rate_limit: {unit: second, requests_per_unit: 10, overage_budget: 10%%}
  - key: own
    rate_limit: {unit: second, requests_per_unit: 10, scope: region}
`, requests))
	}
	m, e := newFixture(t, limit(10))
	var got []string
	m.Short = func(names []string, more int, text string) { got = append(got, fmt.Sprint(names, more, text)) }
	seconds := func(n int, age time.Duration) {
		for range n {
			m.views.sample(m.views.next, func() []view { return []view{{age: age}, {}} })
		}
		m.sample(e.Now())
	}
	check := func(want int) {
		t.Helper()
		if len(got) != want || want > 0 && !strings.HasPrefix(got[want-1], "[d: second] 0windows of 1 s with views 500 ms old") {
			t.Errorf("got %q, want %d warnings", got, want)
		}
	}
	seconds(settledViews-1, 500*time.Millisecond)
	check(0) // the age is not known well
	seconds(2, 500*time.Millisecond)
	check(1)
	seconds(10, time.Second)
	check(1)
	e.set = limit(10)
	seconds(1, 500*time.Millisecond)
	check(1)
	e.set = limit(20)
	seconds(20, 500*time.Millisecond)
	check(2)
}
