package swarm

import (
	"testing"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
)

// TestSwarm plays swarm runs, each twice. Those in which limits have rights are
// played under the naive rule too, which must not always keep to them: else
// they would put nothing to the test.
func TestSwarm(t *testing.T) {
	runs := uint64(40)
	exceeded := 0
	if testing.Short() {
		runs = 6
	}
	for seed := range runs {
		r, err := sim.RunTwice(Draw(seed, false), sim.Options{Auditors: audit.All})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		if r.Code() != sim.ExitFine {
			t.Errorf("rld sim swarm --runs 1 --seed %d: exit %d, pending %q, %v", seed, r.Code(), r.Pending, r.Auditors)
		}
		naive, err := Naively(seed)
		if err != nil {
			t.Error(err)
		}
		if naive == nil {
			continue
		}
		if windows, _ := naive.Exceeded(); windows > 0 {
			exceeded++
		}
	}
	if exceeded == 0 && !testing.Short() {
		t.Error("the naive rule never exceeded what rights sum to")
	}
}

// BenchmarkSwarm plays swarm runs as they come.
func BenchmarkSwarm(b *testing.B) {
	seed := uint64(1000)
	for b.Loop() {
		if _, err := sim.Run(Draw(seed, false), sim.Options{Auditors: audit.All}); err != nil {
			b.Fatal(err)
		}
		seed++
	}
}

// Every seed draws a run: the first of these drew more hits a second than the
// language of limits allows a bucket with an owner.
func TestDraws(t *testing.T) {
	Draw(20261125400443, false)
	for seed := range uint64(1_000) {
		Draw(seed, false)
	}
}

// TestLossTakesTime: agreement has more time where frames are lost, and never
// without an end.
func TestLossTakesTime(t *testing.T) {
	for _, c := range []struct {
		network sim.Network
		want    time.Duration
	}{
		{sim.Network{}, 15},
		{sim.Network{Across: sim.Link{Loss: 50 * rules.Percent}}, 60},
		{sim.Network{Region: sim.Link{Loss: 20 * rules.Percent, Corrupt: 20 * rules.Percent}}, 36},
		{sim.Network{Region: sim.Link{Truncate: 100 * rules.Percent}}, 150},
	} {
		if got := rounds(&c.network); got != c.want {
			t.Errorf("%d lags over %+v, want %d", got, c.network, c.want)
		}
	}
}
