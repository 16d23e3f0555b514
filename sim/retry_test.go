package sim

import (
	"testing"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
)

// TestRetries: clients that wait as long as the answer asks are all back in the
// next window, those with jitter later, and none comes more often than it may.
func TestRetries(t *testing.T) {
	cfg := Default()
	cfg.Regions, cfg.Duration, cfg.Settle = []Region{{"eu", 1}}, 30*time.Second, 0
	cfg.Rules = parsed(t, `
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: second, unit_multiplier: 10, requests_per_unit: 100}
`)
	l := load.Workload{
		Domain: "edge", Descriptors: [][]rules.Entry{{{Key: "user", Value: load.Drawn}}},
		Hits: 1, From: time.Second, To: 2 * time.Second, Rate: 150,
	}
	for _, c := range []struct {
		retry     *load.Retry
		low, high uint64 // decisions beyond the first attempts
	}{
		{nil, 0, 0},
		{&load.Retry{Attempts: 1}, 20, 100},
		{&load.Retry{Attempts: 3, Backoff: time.Second}, 60, 300},
	} {
		cfg.Workloads = []load.Workload{l}
		base, err := Run(&cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Workloads[0].Retry = c.retry
		r, err := Run(&cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if more := r.Decisions - base.Decisions; more < c.low || more > c.high {
			t.Errorf("%+v: %d more decisions, want %d to %d", c.retry, more, c.low, c.high)
		}
	}
}
