package limitstest

import (
	"testing"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon"
	"github.com/georld/rld/limits"
)

// TestExamples plays the tests of the example limits.
func TestExamples(t *testing.T) {
	set, found := limits.Parse(daemon.ReadLimits(&config.Limits{Path: "../../../examples/limits"}).Files, limits.Options{})
	if set == nil {
		t.Fatal(found)
	}
	r, err := Run(set, []string{"../../../examples/limits_test.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if _, faults := r.Text(); !r.OK || r.Tests == 0 {
		t.Errorf("%d tests:\n%s", r.Tests, faults)
	}
}
