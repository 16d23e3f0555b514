package telemetry

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/internal/connlimit"
)

func connectionMetrics(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(newConnectionCollector(func() []connlimit.Stats {
		return []connlimit.Stats{{
			Name: "grpc", Established: 3, Unfinished: 1, Bounds: connlimit.Bounds{Established: 10, Unfinished: 2},
			Closed: map[connlimit.Reason]uint64{connlimit.ReasonCancelled: 7},
		}}
	}))
	return reg
}

// TestConnections exports the connections of a listener.
func TestConnections(t *testing.T) {
	text := scrape(t, connectionMetrics(t))
	for _, want := range []string{
		`rld_connections{listener="grpc",state="established"} 3`,
		`rld_connections{listener="grpc",state="unfinished"} 1`,
		`rld_max_connections{listener="grpc",state="established"} 10`,
		`rld_max_connections{listener="grpc",state="unfinished"} 2`,
		`rld_closed_connections_total{listener="grpc",reason="cancelled"} 7`,
		`rld_closed_connections_total{listener="grpc",reason="idle"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
}
