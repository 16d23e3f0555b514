package swarm

import (
	"testing"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
)

// TestKnown finds each known violation: docs/simulation.md lists the seeds.
func TestKnown(t *testing.T) {
	const most = 60
	for _, v := range violations {
		if testing.Short() && v.name != "late_start" {
			continue
		}
		found := false
		for seed := uint64(1); seed <= most && !found; seed++ {
			d := draws(seed)
			v.draw(d)
			r, err := sim.Run(&d.cfg, sim.Options{Auditors: audit.All})
			if err != nil {
				t.Fatalf("%s, seed %d: %v", v.name, seed, err)
			}
			if found = len(r.Violated()) > 0; found {
				t.Logf("%s: seed %d: %v", v.name, seed, r.Violated())
			}
		}
		if !found {
			t.Errorf("%s: %d seeds find nothing", v.name, most)
		}
	}
}
