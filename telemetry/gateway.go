package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/gateway"
)

// newFaulty returns the counters of faulty requests by mapping and reason, and
// registers them if there are mappings.
func newFaulty(r *registry, gateways []string) map[string][]prometheus.Counter {
	if len(gateways) == 0 {
		return nil
	}
	v := vec(r, "rld_gateway_faulty_requests_total", prometheus.NewCounterVec)
	faulty := make(map[string][]prometheus.Counter, len(gateways))
	for _, name := range gateways {
		reasons := gateway.Reasons()
		counters := make([]prometheus.Counter, len(reasons)+1) // no reason is 0
		for _, reason := range reasons {
			counters[reason] = v.WithLabelValues(name, reason.String())
		}
		faulty[name] = counters
	}
	return faulty
}

// FaultyRequest counts a faulty request of a gateway. It ignores mappings that
// Options does not name, since labels must not grow. It neither waits nor
// allocates.
func (m *Metrics) FaultyRequest(name string, reason gateway.Reason) {
	if of := m.faulty[name]; int(reason) < len(of) && of[reason] != nil {
		of[reason].Inc()
	}
}
