package sim

import (
	"testing"
)

// TestScenarios: every scenario that comes with the program loads, does what
// it expects, and agrees in the end.
func TestScenarios(t *testing.T) {
	for i, info := range Scenarios() {
		t.Run(info.Name, func(t *testing.T) {
			if testing.Short() && i%4 != 0 {
				t.Skip("in short every fourth")
			}
			cfg, _ := Builtin(info.Name)
			if cfg.Name != info.Name || info.Title == "" {
				t.Errorf("name %q, title %q", cfg.Name, info.Title)
			}
			if cfg.Grid != nil {
				t.Skip("TestBudgetsGrid plays a part of it")
			}
			r, err := Run(cfg, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Code() != ExitFine {
				t.Errorf("exit %d, pending %q, %+v", r.Code(), r.Pending, violated(r))
			}
			for _, rule := range r.Rules {
				t.Logf("%+v", rule)
			}
			t.Logf("%d events, %d decisions of %.0f bytes, %+v, seen %v",
				r.Events, r.Decisions, r.BytesPerDecision, r.Staleness, r.Seen)
		})
	}
}

// TestScenarioFiles: no file is left out of the list because it is broken.
func TestScenarioFiles(t *testing.T) {
	for _, name := range scenarioNames() {
		data, _ := BuiltinSource(name)
		if _, err := ParseScenario(name+".yaml", data); err != nil {
			t.Error(err)
		}
	}
}
