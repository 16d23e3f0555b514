package scenario_test

import (
	"testing"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/scenario"
	"github.com/georld/rld/sim/swarm"
)

// TestFormat writes drawn runs as scenarios, which do the same.
func TestFormat(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		drawn := swarm.Draw(seed, seed%3 == 0)
		file, err := scenario.Format(drawn)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := scenario.Parse("drawn.yaml", file)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, file)
		}
		first, err := sim.Run(drawn, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		second, err := sim.Run(parsed, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if first.TraceHash != second.TraceHash {
			t.Errorf("seed %d does something else as a scenario:\n%s", seed, file)
		}
		again, err := scenario.Format(parsed)
		if err != nil || string(again) != string(file) {
			t.Errorf("seed %d: written again, %v:\n%s\nwas\n%s", seed, err, again, file)
		}
	}
}
