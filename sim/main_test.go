package sim_test

import (
	"testing"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
)

// TestMain gives the tests of package sim the auditors, which import it.
func TestMain(m *testing.M) {
	sim.TestAuditors = func(names ...string) func(*sim.World) []*sim.Auditor {
		if len(names) == 0 {
			return audit.All
		}
		return audit.Only(names...)
	}
	m.Run()
}
