// Package telemetry turns what a daemon does into Prometheus metrics. Nothing
// here registers itself anywhere: the caller brings the registry. No label
// ever holds what a request brought: domains and rules are those of the
// configuration, edges and reasons are fixed sets, and regions are bounded.
package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options is what Metrics are made of.
type Options struct {
	// Engine is asked at each scrape. Required.
	Engine Engine
	// Cluster is asked at each scrape. Nil for a daemon alone, which then
	// exports no metrics of a cluster.
	Cluster Cluster
	// Budgets is asked at each scrape. Nil likewise.
	Budgets Budgets
	// Strict is asked at each scrape. Nil for a daemon that is no home.
	Strict Strict
	// Version goes into rld_build_info.
	Version string
}

// Metrics are the metrics of one daemon. It is safe for concurrent use.
type Metrics struct {
	*Recorder

	reloads    *prometheus.CounterVec
	lastReload prometheus.Gauge
	stale      prometheus.Gauge
	panics     prometheus.Counter
	waits      prometheus.Histogram // nil for a daemon that is no home
}

// The results of a reload.
const (
	resultSuccess = "success"
	resultError   = "error"
)

// New makes the metrics and registers them. The error names those that reg
// refuses, which happens only where it holds others of their names.
func New(reg prometheus.Registerer, o Options) (*Metrics, error) {
	m := &Metrics{
		Recorder: newRecorder(),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rld_config_reloads_total",
			Help: "Loads of the limits, the first included, by result.",
		}, []string{"result"}),
		lastReload: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rld_config_last_reload_success_timestamp_seconds",
			Help: "Unix time of the last load that succeeded.",
		}),
		stale: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rld_config_stale",
			Help: "1 while the limits on disk are refused and older ones are in force.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rld_panics_total",
			Help: "Calls that ended in a caught panic: a fault of rld, whose stack is in the log.",
		}),
	}
	m.reloads.WithLabelValues(resultSuccess)
	m.reloads.WithLabelValues(resultError)
	all := []prometheus.Collector{
		m.reloads, m.lastReload, m.stale, m.panics, m.duration, m.malformed,
		newEngineCollector(o.Engine), buildInfo(o.Version),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	if o.Cluster != nil {
		all = append(all, newClusterCollector(o.Cluster))
	}
	if o.Budgets != nil {
		all = append(all, newBudgetCollector(o.Budgets, o.Engine))
	}
	if o.Strict != nil {
		m.waits = newWaits()
		all = append(all, newStrictCollector(o.Strict), m.waits)
	}
	var faults []error
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			faults = append(faults, err)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}

// Reloaded is told that limits were put in force.
func (m *Metrics) Reloaded(at time.Time) {
	m.reloads.WithLabelValues(resultSuccess).Inc()
	m.lastReload.Set(float64(at.UnixNano()) / 1e9)
	m.stale.Set(0)
}

// ReloadFailed is told that limits were refused and older ones stay.
func (m *Metrics) ReloadFailed() {
	m.reloads.WithLabelValues(resultError).Inc()
	m.stale.Set(1)
}

// Waited notes how long a call waited for the homes of its keys.
func (m *Metrics) Waited(d time.Duration) {
	if m.waits != nil {
		m.waits.Observe(d.Seconds())
	}
}

func newWaits() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:                            "rld_strict_wait_seconds",
		Help:                            "Time that calls waited for the homes of their keys.",
		Buckets:                         []float64{1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 5e-1, 1},
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	})
}

// Panicked counts a caught panic. The method is for the log, where the stack
// is.
func (m *Metrics) Panicked(string) { m.panics.Inc() }

func buildInfo(version string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "rld_build_info",
		Help:        "1, with the version of rld and of Go as labels.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}

// Handler serves what g gathers as text or protobuf, a few scrapes at a time.
func Handler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4,
		Timeout:             10 * time.Second,
	})
}
