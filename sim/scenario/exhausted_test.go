package scenario_test

import (
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/scenario"
)

// TestExhaustedLimitIsKnownEverywhere lets keys reach their limit in daily
// windows. The last hits before that are known at all daemons a short time
// later: then nobody admits any more, also where the key was not asked for
// meanwhile.
func TestExhaustedLimitIsKnownEverywhere(t *testing.T) {
	const limit, knownIn = 300, 300 * time.Millisecond
	cfg, err := scenario.Parse("exhausted.yaml", []byte(`
duration: 18s
regions: {us: 3, eu: 3, ap: 3}
limits: {domain: edge, descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 300}}]}
workloads: [{descriptor: {user: "*"}, keys: 60, rate: 1320/s}]
`))
	if err != nil {
		t.Fatal(err)
	}
	admitted, full := map[crdt.Key]int{}, map[crdt.Key]time.Duration{}
	_, err = sim.Run(cfg, sim.Options{Auditors: func(*sim.World) []*sim.Auditor {
		return []*sim.Auditor{{Decided: func(d *sim.Decided) {
			if !d.Allowed {
				return
			}
			if admitted[d.Key]++; admitted[d.Key] == limit {
				full[d.Key] = d.At
			}
			if at, ok := full[d.Key]; ok && d.At > at+knownIn {
				t.Errorf("%v: %s admitted a hit %v after the limit was reached", d.At, d.Daemon.Name, d.At-at)
			}
		}}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(full) < 50 {
		t.Fatalf("%d keys reached their limit, want 50", len(full))
	}
}
