package telemetry

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// engine is an Engine with constant values.
type engine struct {
	set            *rules.Set
	tallies        []tally
	known, unknown uint64
	stats          node.Stats
}

type tally struct {
	domain, rule string
	t            quota.Tally
}

func (e *engine) Tallies(yield func(domain, rule string, t quota.Tally)) {
	for _, t := range e.tallies {
		yield(t.domain, t.rule, t.t)
	}
}
func (e *engine) Unmatched() (known, unknown uint64) { return e.known, e.unknown }
func (e *engine) Stats() node.Stats                  { return e.stats }
func (e *engine) Rules() *rules.Set                  { return e.set }

// newMetrics registers the metrics of e in a registry that checks
// collected series.
func newMetrics(t *testing.T, e *engine) (*Metrics, *prometheus.Registry) {
	t.Helper()
	limit := &rules.Limit{Unit: rules.Second, Multiplier: 1, Requests: 10}
	set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: []rules.Node{
		{Key: "tier", Value: "free", Limit: limit},
		{Key: "tier", Children: []rules.Node{{Key: "user", Limit: limit}}},
		{Key: "internal", Limit: &rules.Limit{Unlimited: true}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	e.set = set
	reg := prometheus.NewPedanticRegistry()
	m, err := New(reg, Options{Engine: e, Version: "v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	return m, reg
}

// compare checks the lines of a scrape for the named metrics.
func compare(t *testing.T, reg prometheus.Gatherer, want string, names ...string) {
	t.Helper()
	var got strings.Builder
	for line := range strings.Lines(scrape(t, reg)) {
		words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '{' })
		name := words[0]
		if name == "#" {
			name = words[2]
		}
		if slices.Contains(names, name) {
			got.WriteString(line)
		}
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got.String()); diff != "" {
		t.Errorf("scrape (-want +got):\n%s", diff)
	}
}

func TestRulesWithALimitBeginAtZero(t *testing.T) {
	_, reg := newMetrics(t, &engine{})
	compare(t, reg, `
# HELP rld_config_rules Rules in force, including those without a limit.
# TYPE rld_config_rules gauge
rld_config_rules 4
# HELP rld_decisions_total Decided descriptors: allowed, denied, or shadowed (above the limit in shadow mode). In the global shadow mode a call counts as if that mode were off. Rule override with an empty domain counts limits of requests.
# TYPE rld_decisions_total counter
rld_decisions_total{domain="edge",outcome="allowed",rule="tier > user"} 0
rld_decisions_total{domain="edge",outcome="allowed",rule="tier=free"} 0
rld_decisions_total{domain="edge",outcome="denied",rule="tier > user"} 0
rld_decisions_total{domain="edge",outcome="denied",rule="tier=free"} 0
rld_decisions_total{domain="edge",outcome="shadowed",rule="tier > user"} 0
rld_decisions_total{domain="edge",outcome="shadowed",rule="tier=free"} 0
`, "rld_decisions_total", "rld_config_rules")
}

// TestTalliesAddUp has tallies of several shards, of two rules with one path,
// and of no rule.
func TestTalliesAddUp(t *testing.T) {
	e := &engine{tallies: []tally{
		{"edge", "tier=free", quota.Tally{
			Allowed: 1, Denied: 2, Shadowed: 3, HitsWithin: 4, HitsNear: 5, HitsOver: 6,
		}},
		{"edge", "tier=free", quota.Tally{Allowed: 10, HitsWithin: 10}},
		{"", "", quota.Tally{Denied: 7, HitsOver: 70}},
		{"edge", "internal", quota.Tally{}},
	}}
	_, reg := newMetrics(t, e)
	compare(t, reg, `
# HELP rld_decisions_total Decided descriptors: allowed, denied, or shadowed (above the limit in shadow mode). In the global shadow mode a call counts as if that mode were off. Rule override with an empty domain counts limits of requests.
# TYPE rld_decisions_total counter
rld_decisions_total{domain="",outcome="allowed",rule="override"} 0
rld_decisions_total{domain="",outcome="denied",rule="override"} 7
rld_decisions_total{domain="",outcome="shadowed",rule="override"} 0
rld_decisions_total{domain="edge",outcome="allowed",rule="tier > user"} 0
rld_decisions_total{domain="edge",outcome="allowed",rule="tier=free"} 11
rld_decisions_total{domain="edge",outcome="denied",rule="tier > user"} 0
rld_decisions_total{domain="edge",outcome="denied",rule="tier=free"} 2
rld_decisions_total{domain="edge",outcome="shadowed",rule="tier > user"} 0
rld_decisions_total{domain="edge",outcome="shadowed",rule="tier=free"} 3
# HELP rld_hits_total Requested hits: within the limit, near it (above limits.near_limit_ratio), or over it.
# TYPE rld_hits_total counter
rld_hits_total{domain="",outcome="near",rule="override"} 0
rld_hits_total{domain="",outcome="over",rule="override"} 70
rld_hits_total{domain="",outcome="within",rule="override"} 0
rld_hits_total{domain="edge",outcome="near",rule="tier > user"} 0
rld_hits_total{domain="edge",outcome="near",rule="tier=free"} 5
rld_hits_total{domain="edge",outcome="over",rule="tier > user"} 0
rld_hits_total{domain="edge",outcome="over",rule="tier=free"} 6
rld_hits_total{domain="edge",outcome="within",rule="tier > user"} 0
rld_hits_total{domain="edge",outcome="within",rule="tier=free"} 14
`, "rld_decisions_total", "rld_hits_total")
}

func TestStateOfTheEngine(t *testing.T) {
	e := &engine{known: 3, unknown: 4}
	e.stats.LiveKeys, e.stats.MaxKeys, e.stats.OverflowKeys = 5, 1_000, 2
	e.stats.ClockOffset = (1500 * time.Millisecond).Nanoseconds()
	e.stats.ClockForward, e.stats.ClockBackward = 6, 7
	e.stats.Degraded[node.KeysFull], e.stats.Degraded[node.CellsFull] = 8, 9
	_, reg := newMetrics(t, e)
	compare(t, reg, `
# HELP rld_clock_offset_seconds Lead of the clock of windows over the wall clock, in seconds.
# TYPE rld_clock_offset_seconds gauge
rld_clock_offset_seconds 1.5
# HELP rld_clock_steps_total Steps of the wall clock, for example when an operator sets it, by direction.
# TYPE rld_clock_steps_total counter
rld_clock_steps_total{direction="backward"} 7
rld_clock_steps_total{direction="forward"} 6
# HELP rld_degraded_total Descriptors with a degraded decision, by reason.
# TYPE rld_degraded_total counter
rld_degraded_total{reason="alone"} 0
rld_degraded_total{reason="cells_full"} 9
rld_degraded_total{reason="circuit_breaker_open"} 0
rld_degraded_total{reason="clock_off"} 0
rld_degraded_total{reason="keys_full"} 8
rld_degraded_total{reason="no_cluster"} 0
rld_degraded_total{reason="no_rights"} 0
rld_degraded_total{reason="owner_unreachable"} 0
# HELP rld_live_keys Tracked keys.
# TYPE rld_live_keys gauge
rld_live_keys 5
# HELP rld_max_keys Greatest number of tracked keys. Further keys share overflow counters.
# TYPE rld_max_keys gauge
rld_max_keys 1000
# HELP rld_overflow_keys Overflow counters in use. Above 0, new keys may be denied falsely.
# TYPE rld_overflow_keys gauge
rld_overflow_keys 2
# HELP rld_unmatched_total Descriptors without a rule, in domains with rules (known) or without any (unknown).
# TYPE rld_unmatched_total counter
rld_unmatched_total{domain="known"} 3
rld_unmatched_total{domain="unknown"} 4
`, "rld_clock_offset_seconds", "rld_clock_steps_total", "rld_degraded_total", "rld_live_keys", "rld_max_keys",
		"rld_overflow_keys", "rld_unmatched_total")
}

func TestReloads(t *testing.T) {
	m, reg := newMetrics(t, &engine{})
	for _, step := range []struct {
		name                  string
		do                    func()
		timestamp             string
		failed, loaded, stale int
	}{
		{"at start", func() {}, "0", 0, 0, 0},
		{"first load", func() { m.Reloaded(time.UnixMilli(1_500)) }, "1.5", 0, 1, 0},
		{"a bad file", m.ReloadFailed, "1.5", 1, 1, 1},
		{"a good one", func() { m.Reloaded(time.Unix(60, 0)) }, "60", 1, 2, 0},
	} {
		step.do()
		t.Run(step.name, func(t *testing.T) {
			compare(t, reg, fmt.Sprintf(`
# HELP rld_config_last_reload_success_timestamp_seconds Unix time of the last successful load, in seconds.
# TYPE rld_config_last_reload_success_timestamp_seconds gauge
rld_config_last_reload_success_timestamp_seconds %s
# HELP rld_config_reloads_total Loads of the limits, including the first, by result.
# TYPE rld_config_reloads_total counter
rld_config_reloads_total{result="error"} %d
rld_config_reloads_total{result="success"} %d
# HELP rld_config_stale 1 while the limits on disk, or of the xDS server, are invalid and the previous ones are in force, else 0.
# TYPE rld_config_stale gauge
rld_config_stale %d
`, step.timestamp, step.failed, step.loaded, step.stale),
				"rld_config_last_reload_success_timestamp_seconds", "rld_config_reloads_total", "rld_config_stale")
		})
	}
}

func TestEdges(t *testing.T) {
	m, reg := newMetrics(t, &engine{})
	m.Decided(server.EdgeRLS, time.Microsecond) // the bounds belong to their buckets
	m.Decided(server.EdgeRLS, 3*time.Microsecond)
	m.Decided(server.EdgeRLS, time.Second)
	m.Malformed(server.EdgeHTTP)
	m.Decided("made up", time.Second)
	m.Malformed("made up")
	compare(t, reg, `
# HELP rld_malformed_total Malformed requests that were rejected, by edge.
# TYPE rld_malformed_total counter
rld_malformed_total{edge="http"} 1
rld_malformed_total{edge="native"} 0
rld_malformed_total{edge="rlqs"} 0
rld_malformed_total{edge="rls"} 0
rld_malformed_total{edge="stream"} 0
`, "rld_malformed_total")
	text := scrape(t, reg)
	for _, line := range []string{
		`rld_decision_duration_seconds_bucket{edge="rls",le="1e-06"} 1`,
		`rld_decision_duration_seconds_bucket{edge="rls",le="2e-06"} 1`,
		`rld_decision_duration_seconds_bucket{edge="rls",le="5e-06"} 2`,
		`rld_decision_duration_seconds_bucket{edge="rls",le="0.01"} 2`,
		`rld_decision_duration_seconds_bucket{edge="rls",le="+Inf"} 3`,
		`rld_decision_duration_seconds_count{edge="stream"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if strings.Contains(text, "made up") {
		t.Error("an unknown edge became a label")
	}
}

func TestPanics(t *testing.T) {
	m, reg := newMetrics(t, &engine{})
	m.Panicked("/rld.v1.RateLimiter/Check")
	m.Panicked("/rld.v1.RateLimiter/CheckStream")
	compare(t, reg, `
# HELP rld_panics_total Calls that ended in a recovered panic. Each is a bug of rld; the log has the stack.
# TYPE rld_panics_total counter
rld_panics_total 2
`, "rld_panics_total")
}

// TestRecorderDoesNotAllocate checks the methods on the path of every call.
func TestRecorderDoesNotAllocate(t *testing.T) {
	m, _ := newMetrics(t, &engine{})
	var r server.Recorder = m
	if n := testing.AllocsPerRun(1_000, func() { r.Decided(server.EdgeNative, 7*time.Microsecond) }); n != 0 {
		t.Errorf("Decided allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1_000, func() { r.Malformed(server.EdgeNative) }); n != 0 {
		t.Errorf("Malformed allocates %v times", n)
	}
}

func BenchmarkDecided(b *testing.B) {
	r, err := New(prometheus.NewRegistry(), Options{Engine: &engine{}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Decided(server.EdgeRLS, 7*time.Microsecond)
	}
}

// scrape requests the metrics as Prometheus does.
func scrape(t *testing.T, reg prometheus.Gatherer) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(reg).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestScrapePassesLint(t *testing.T) {
	_, reg := newMetrics(t, &engine{})
	text := scrape(t, reg)
	for _, part := range []string{
		`rld_build_info{goversion="` + runtime.Version() + `",version="v1.2.3"} 1`,
		"go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in the scrape", part)
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "rld_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestSecondSetInOneRegistry(t *testing.T) {
	_, reg := newMetrics(t, &engine{})
	m, err := New(reg, Options{Engine: &engine{}})
	var twice prometheus.AlreadyRegisteredError
	if m != nil || !errors.As(err, &twice) {
		t.Errorf("got %v, %v", m, err)
	}
}
