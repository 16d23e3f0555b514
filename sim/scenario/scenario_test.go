package scenario

import (
	"testing"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
)

// TestScenarios: every scenario that comes with the program loads, does what
// it expects, and agrees in the end.
func TestScenarios(t *testing.T) {
	for i, name := range Names() {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && i%12 != 0 {
				t.Skip("in short every twelfth")
			}
			cfg, ok := Builtin(name)
			if !ok || cfg.Name != name || cfg.Title == "" {
				t.Fatalf("scenario %s: %+v", name, cfg)
			}
			if cfg.Daemons() > 100 {
				t.Skip("too large for a test")
			}
			if cfg.Grid != nil {
				t.Skip("TestBudgetsGrid plays a part of it")
			}
			r, err := sim.Run(cfg, sim.Options{Auditors: audit.All})
			if err != nil {
				t.Fatal(err)
			}
			if r.Code() != sim.ExitFine {
				t.Errorf("exit %d, pending %q, %+v", r.Code(), r.Pending, r.Auditors)
			}
		})
	}
}

// TestScenarioFiles: no file is left out of the list because it is broken.
func TestScenarioFiles(t *testing.T) {
	for _, name := range Names() {
		data, _ := Source(name)
		if _, err := Parse(name+".yaml", data); err != nil {
			t.Error(err)
		}
	}
}
