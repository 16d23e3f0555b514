package sim

import (
	"testing"
	"time"

	"github.com/georld/rld/control"
)

// TestControlCost bounds what the control log sends: bytes of all daemons in
// the first 30 seconds, in which the cluster begins and its voters are chosen,
// and frames and bytes a daemon and second in the second minute, in which
// nothing changes. At 100 calls a second and daemon a byte is .01 bytes a
// decision.
func TestControlCost(t *testing.T) {
	sent := func(daemons int, length time.Duration) Traffic {
		cfg := standard(t, length)
		cfg.Control, cfg.Settle, cfg.Workloads[0].Rate = &control.Config{}, 0, 1
		for i := range cfg.Regions {
			cfg.Regions[i].Daemons = daemons
		}
		r, err := Run(cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Traffic
	}
	for _, tt := range []struct {
		daemons       int
		begin         float64 // bytes a decision
		frames, bytes float64 // a daemon and second
	}{{1, 1.4, 1.2, 26}, {3, 1.25, 1.17, 24}, {10, 1.45, 0.75, 14}} {
		all := float64(3 * tt.daemons)
		start := float64(sent(tt.daemons, 30*time.Second).ControlBytes) / (all * 30 * 100)
		begin, end := sent(tt.daemons, time.Minute), sent(tt.daemons, 2*time.Minute)
		frames, bytes := float64(end.Control-begin.Control)/60/all, float64(end.ControlBytes-begin.ControlBytes)/60/all
		t.Logf("%d daemons a region: %.2f bytes a decision in 30 s, then %.2f frames and %.1f bytes a daemon and second", tt.daemons, start, frames, bytes)
		if start > tt.begin || frames > tt.frames || bytes > tt.bytes {
			t.Errorf("%d daemons a region send %.2f bytes a decision in 30 s, and then %.2f frames and %.1f bytes a daemon and second, want %.2f, %.2f and %.1f at most",
				tt.daemons, start, frames, bytes, tt.begin, tt.frames, tt.bytes)
		}
	}
}
