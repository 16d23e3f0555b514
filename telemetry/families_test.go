package telemetry

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// TestFamiliesAreExported compares the tables of families with the families of
// a daemon that exports everything.
func TestFamiliesAreExported(t *testing.T) {
	want := map[string]Family{}
	for _, f := range slices.Concat(daemonFamilies, connectionFamilies, engineFamilies, callerFamilies, clusterFamilies, budgetFamilies, strictFamilies, []Family{waitFamily}) {
		f.Labels = slices.Sorted(slices.Values(f.Labels))
		if _, twice := want[f.Name]; twice {
			t.Errorf("%s is there twice", f.Name)
		}
		want[f.Name] = f
	}
	_, reg := clusterMetrics(t, fullStats())
	gathered, err := prometheus.Gatherers{
		callerMetrics(t), gatewayMetrics(t), reg, connectionMetrics(t), budgetMetrics(t, fullBudgets(), &engine{}), strictMetrics(t, fullStrict()),
	}.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Family{}
	for _, f := range gathered {
		if !strings.HasPrefix(f.GetName(), "rld_") {
			continue
		}
		x := Family{Name: f.GetName(), Kind: Kind(strings.ToLower(f.GetType().String())), Help: f.GetHelp()}
		for _, l := range f.GetMetric()[0].GetLabel() {
			x.Labels = append(x.Labels, l.GetName())
		}
		got[x.Name] = x
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("families (-table +exported):\n%s", diff)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if help := want[name].Help; !strings.HasSuffix(help, ".") {
			t.Errorf("the help of %s is no sentence: %q", name, help)
		}
	}
}
