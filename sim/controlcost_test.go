package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/scenario"
)

// TestControlAtRest bounds what the control log sends in the second minute of a
// cluster, in which nothing changes: bytes and frames a second of all daemons.
// At 100 calls a second and daemon it is 3 bytes and .012 frames a decision at
// most.
func TestControlAtRest(t *testing.T) {
	sent := func(daemons int, length time.Duration) *sim.Traffic {
		cfg, err := scenario.Parse("rest.yaml", fmt.Appendf(nil, `name: rest
duration: %v
settle: 0s
regions: {r0: %[2]d, r1: %[2]d, r2: %[2]d}
control: {}
limits:
  domain: rest
  descriptors:
    - {key: user, rate_limit: {unit: minute, requests_per_unit: 60}}
workloads:
  - {name: all, descriptor: {user: "*"}, keys: 10, rate: 1/s}
`, length, daemons))
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.Run(cfg, sim.Options{Auditors: audit.Only()})
		if err != nil {
			t.Fatal(err)
		}
		return &r.Traffic
	}
	for _, tt := range []struct{ daemons, frames, bytes uint64 }{{1, 36, 8_500}, {3, 105, 21_000}} { // in 10 s
		begin, end := sent(int(tt.daemons), time.Minute), sent(int(tt.daemons), 2*time.Minute)
		frames, bytes := (end.Control-begin.Control)/6, (end.ControlBytes-begin.ControlBytes)/6
		t.Logf("%d daemons a region: %d frames, %d bytes in 10 s", tt.daemons, frames, bytes)
		if frames > tt.frames || bytes > tt.bytes {
			t.Errorf("%d daemons a region send %d frames and %d bytes in 10 s, want %d and %d at most", tt.daemons, frames, bytes, tt.frames, tt.bytes)
		}
	}
}
