package sim

import (
	"testing"
	"time"

	"github.com/georld/rld/node"
	epochs "github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/sim/load"
)

// Hits admitted beyond the rights are found under every algorithm. The runs are
// real; the rights gate is removed from the nodes without the auditor's
// knowledge.
func TestAdmittedAuditorCatches(t *testing.T) {
	needsMinutes(t)
	for _, algorithm := range []string{
		"fixed_window", "sliding_window", "sliding_log", "token_bucket", "leaky_bucket",
	} {
		cfg := hard(t, "algorithm: "+algorithm+", "+fixed)
		cfg.Workloads[0].Keys = 1
		cfg.Workloads[0].Pulse = &load.Pulse{Every: 6 * time.Second, Within: 20 * time.Millisecond, Requests: 200}
		for _, gate := range []bool{true, false} {
			m := &mutation{}
			if !gate {
				m.rights = func(*World, *Daemon, node.Allotments) node.Allotments { return plenty{} }
			}
			_, r, err := run(cfg, Options{Auditors: TestAuditors("admitted")}, m.rig)
			if err != nil {
				t.Fatal(err)
			}
			a := r.Auditors[0]
			if (a.Violations == 0) != gate || a.Checks == 0 {
				t.Errorf("%s, with the gate %t: %+v", algorithm, gate, a)
			}
		}
	}
}

// plenty is rights without end.
type plenty struct{ node.Allotments }

func (plenty) Version() uint64 { return 1 }

func (plenty) Allotment(_, total uint64, _, _ int64, _ bool) (uint64, epochs.Reason) {
	return 100 * total, 0
}

func (plenty) PartOf(_ string, _, total uint64, _, _ int64, _ bool) uint64 { return total }

func (plenty) RegionPart(_ string, _, total uint64, _, _ int64) uint64 { return total }

func (plenty) RegionMost(_ string, _, total uint64, _, _ int64) uint64 { return total }
