package sim

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
)

// standard is three regions of three daemons, a thousand keys by Zipf's law and
// a thousand requests a second.
func standard(tb testing.TB, length time.Duration) *Config {
	cfg := Default()
	cfg.Name, cfg.Duration = "standard", length
	cfg.Rules = parsed(tb, `
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 600}
`)
	cfg.Workloads = []load.Workload{{
		Name: "users", Domain: "edge", Hits: 1, Rate: 1000, Keys: 1000, Zipf: 1,
		Descriptors: [][]rules.Entry{{{Key: "user", Value: load.Drawn}}},
	}}
	return &cfg
}

// BenchmarkStandard plays a virtual minute; ten must take at most 6 s, at
// 300,000 events a second or more.
func BenchmarkStandard(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as rld sim does
	for _, c := range []struct {
		name string
		o    Options
	}{{"audited", Options{Auditors: TestAuditors()}}, {"plain", Options{}}} {
		b.Run(c.name, func(b *testing.B) {
			cfg := standard(b, time.Minute)
			events := uint64(0)
			for b.Loop() {
				r, err := Run(cfg, c.o)
				if err != nil {
					b.Fatal(err)
				}
				events += r.Events
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
