package swarm

import (
	"testing"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
)

// TestKnown finds each known violation: docs/simulation.md lists the seeds.
func TestKnown(t *testing.T) {
	const most = 400
	found, want := map[string]bool{}, len(violations)
	if testing.Short() {
		want = 3
	}
	for seed := uint64(1); seed <= most && len(found) < want; seed++ {
		name := violationOf(seed).name
		if found[name] {
			continue
		}
		r, err := sim.Run(Draw(seed, true), sim.Options{Auditors: audit.All})
		if err != nil {
			t.Fatalf("%s, seed %d: %v", name, seed, err)
		}
		if len(r.Violated()) > 0 {
			t.Logf("%s: seed %d: %v", name, seed, r.Violated())
			found[name] = true
		}
	}
	if len(found) < want {
		t.Errorf("%d seeds find %v alone", most, found)
	}
}
