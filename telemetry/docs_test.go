package telemetry

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// TestGuideNamesEveryMetric holds the guide to what is exported, and what is
// exported to the guide.
func TestGuideNamesEveryMetric(t *testing.T) {
	text, err := os.ReadFile("../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := make(map[string]bool)
	for _, name := range regexp.MustCompile(`\brld_[a-z_]+`).FindAllString(string(text), -1) {
		guide[name] = true
	}
	_, reg := clusterMetrics(t, fullStats())
	families, err := prometheus.Gatherers{
		reg, budgetMetrics(t, fullBudgets(), &engine{}), strictMetrics(t, fullStrict()),
	}.Gather()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]bool{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "rld_") {
			exported[f.GetName()] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(exported)), slices.Sorted(maps.Keys(guide))); diff != "" {
		t.Errorf("names (-exported +guide):\n%s", diff)
	}
}
