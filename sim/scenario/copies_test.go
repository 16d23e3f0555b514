package scenario_test

import (
	"fmt"
	"testing"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/scenario"
)

// TestCopiedControl runs daemons with a copy of the control log of another one,
// of its present run and of its last one, and with an older one of their own.
// Their ids end, voters are replaced at once, and the cluster agrees.
func TestCopiedControl(t *testing.T) {
	for name, fault := range map[string]string{
		"this run": "{fault: copied_control, at: 8s, for: 100ms, from: [a-0], to: [b-1]}",
		"last run": "{fault: copied_control, at: 8s, for: 6s, from: [a-0], to: [b-1]}, {fault: crash, at: 9s, for: 1s, where: [a-0]}",
		"old disk": "{fault: copied_control, at: 8s, for: 6s, from: [a-0]}",
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := scenario.Parse("copies.yaml", fmt.Appendf(nil, `
duration: 20s
regions: {a: 2, b: 2, c: 2}
control: {stable: 1s, replace_after: 1m}
limits: {domain: edge, descriptors: [{key: p, rate_limit: {unit: second, requests_per_unit: 10}}]}
workloads: []
faults: [%s, {fault: control_command, at: 9s, where: [b]}, {fault: control_command, at: 11s, where: [c]}]
`, fault))
			if err != nil {
				t.Fatal(err)
			}
			for cfg.Seed = 1; cfg.Seed <= 5; cfg.Seed++ {
				r, err := sim.Run(cfg, sim.Options{Auditors: audit.All})
				if err != nil {
					t.Fatal(err)
				}
				if r.Code() != sim.ExitFine || r.Seen["control_id_ended"] == 0 || r.Seen["control_old_disk"] == 0 {
					t.Errorf("seed %d: exit code %d, seen %v", cfg.Seed, r.Code(), r.Seen)
				}
			}
		})
	}
}
