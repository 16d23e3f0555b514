package scenario_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/scenario"
)

// TestFound replays the runs of the swarm that found a fault, with some seeds.
// rld sim shrink wrote them.
func TestFound(t *testing.T) {
	files, err := filepath.Glob("testdata/found/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for i, file := range files {
		if testing.Short() && i%8 != 0 {
			continue // for the race detector, as a run has one goroutine
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := scenario.Parse(file, data)
		if err != nil {
			t.Fatal(err)
		}
		first := cfg.Seed
		for cfg.Seed = first; cfg.Seed < first+5; cfg.Seed++ {
			r, err := sim.Run(cfg, sim.Options{Auditors: audit.All})
			if err != nil {
				t.Fatal(err)
			}
			if r.Code() != sim.ExitFine {
				t.Errorf("rld sim run %s --seed %d: exit code %d", file, cfg.Seed, r.Code())
			}
		}
	}
}
