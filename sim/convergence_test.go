package sim

import (
	"testing"
	"time"
)

// A count that all replicas of a region lack alike is found.
func TestConvergenceAuditorCatchesWhatAllLack(t *testing.T) {
	cfg := minute(t)
	r := newRig(t, cfg, cfg.Duration)
	if !r.w.settle() {
		t.Fatal(r.w.pending)
	}
	r.auditor("convergence").Settled()
	r.clean("convergence")
	r.decide(r.w.daemons[0], quietKey, true)
	r.auditor("convergence").Settled()
	r.caught("convergence")
}

// TestConvergenceAuditorExcusesDelayedHits: a daemon lacks the latest hits of
// another one that may delay them.
func TestConvergenceAuditorExcusesDelayedHits(t *testing.T) {
	cfg := minute(t)
	cfg.Node.Gossip.Quiet = 5 * time.Second
	r := newRig(t, cfg, cfg.Duration)
	r.auditor("convergence").Settled()
	r.clean("convergence")
}

// TestConvergenceAuditorExcusesOneSidedSilence: one daemon alone takes another
// for silent, and keeps its keys. The others send it nothing of these.
func TestConvergenceAuditorExcusesOneSidedSilence(t *testing.T) {
	cfg := minute(t)
	cfg.Regions = cfg.Regions[:1]
	cfg.Regions[0].Daemons = 4
	cfg.Duration = 10 * time.Second
	cfg.Faults = []Fault{{Kind: Cut, At: 5 * time.Second, From: []string{"eu-3"}, To: []string{"eu-0"}, OneWay: true}}
	r := newRig(t, cfg, 13*time.Second)
	r.auditor("convergence").Settled()
	r.clean("convergence")
}
