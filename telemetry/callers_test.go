package telemetry

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/server/auth"
)

// callerMetrics returns the metrics of callers with every series.
func callerMetrics(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	err := reg.Register(newCallerCollector(func() CallerStats {
		return CallerStats{
			Tokens: auth.Stats{
				Admitted: []auth.Count{{Token: "shop", Calls: 7}},
				Refused:  []auth.Count{{Reason: auth.Missing, Calls: 1}, {Token: "shop", Reason: auth.Rate, Calls: 2}},
			},
			Admin: []Failure{{"browser", 4}},
			Stale: []StaleFile{{"tokens", true}, {"grpc", false}},
			Listeners: []ListenerStats{{
				Listener: "grpc", CertificateExpires: time.Unix(1_900_000_000, 0), Failed: []Failure{{"other", 3}},
			}},
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	return reg
}
