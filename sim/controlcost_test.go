package sim

import (
	"testing"
	"time"

	"github.com/georld/rld/control"
)

// TestControlAtRest bounds what the control log sends in the second minute of a
// cluster, in which nothing changes: frames and bytes of all daemons in ten
// seconds. At 100 calls a second and daemon it is 3 bytes and .012 frames a
// decision at most.
func TestControlAtRest(t *testing.T) {
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
		frames, bytes uint64
	}{{1, 36, 8_500}, {3, 105, 21_000}} {
		begin, end := sent(tt.daemons, time.Minute), sent(tt.daemons, 2*time.Minute)
		frames, bytes := (end.Control-begin.Control)/6, (end.ControlBytes-begin.ControlBytes)/6
		t.Logf("%d daemons a region: %d frames, %d bytes in 10 s", tt.daemons, frames, bytes)
		if frames > tt.frames || bytes > tt.bytes {
			t.Errorf("%d daemons a region send %d frames and %d bytes in 10 s, want %d and %d at most", tt.daemons, frames, bytes, tt.frames, tt.bytes)
		}
	}
}
