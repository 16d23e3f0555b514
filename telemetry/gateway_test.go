package telemetry

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/gateway"
)

// gatewayMetrics returns the metrics of gateways alone.
func gatewayMetrics(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	r := registry{Registerer: reg, families: map[string]Family{}}
	for _, f := range daemonFamilies {
		r.families[f.Name] = f
	}
	newFaulty(&r, []string{"edge"})
	if len(r.faults) > 0 {
		t.Fatal(r.faults)
	}
	return reg
}

// TestFaultyRequests counts by mapping and reason, and holds that no other
// mapping or reason adds a series.
func TestFaultyRequests(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	e := &engine{}
	newMetrics(t, e) // for its rules
	m, err := New(reg, Options{Engine: e, Gateways: []string{"edge"}})
	if err != nil {
		t.Fatal(err)
	}
	m.FaultyRequest("edge", gateway.Repeated)
	m.FaultyRequest("edge", gateway.Repeated)
	m.FaultyRequest("other", gateway.Repeated)
	m.FaultyRequest("edge", 0)
	m.FaultyRequest("edge", 255)
	const name = "rld_gateway_faulty_requests_total"
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		total := 0.0
		for _, series := range f.GetMetric() {
			total += series.GetCounter().GetValue()
		}
		if len(f.GetMetric()) != len(gateway.Reasons()) || total != 2 {
			t.Errorf("%d series, %v requests", len(f.GetMetric()), total)
		}
		if n := testing.AllocsPerRun(100, func() { m.FaultyRequest("edge", gateway.BadURI) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
		return
	}
	t.Error(name + " is missing")
}
