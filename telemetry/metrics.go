// Package telemetry exports the state of a daemon as Prometheus metrics. The
// caller provides the registry. No label ever holds text of a request: domains
// and rules come from the configuration, edges and reasons are fixed sets, and
// regions are bounded. families.go describes all metrics.
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

	"github.com/georld/rld/internal/connlimit"
	"github.com/georld/rld/server"
)

// Options are the sources of Metrics, which read each once a scrape, so that
// the values of a scrape are consistent. The functions are safe for concurrent
// use and do not wait for peers.
type Options struct {
	// Engine is required.
	Engine Engine
	// Cluster and Budgets are nil for a daemon alone, which does not export
	// their metrics.
	Cluster func() ClusterStats
	Budgets func() BudgetStats
	// Control is nil for a daemon alone.
	Control func() ControlStats
	// Strict is nil for a daemon that does not serve strict keys.
	Strict func() StrictStats
	// Connections is nil where nothing bounds connections.
	Connections func() []connlimit.Stats
	// Callers is nil for a daemon without callers.
	Callers func() CallerStats
	// XDS describes the limits of an xDS server, nil for limits in files.
	XDS func() XDSStats
	// Gateways are the names of the mappings for gateways, whose number is
	// bounded.
	Gateways []string
	// Version is a label of rld_build_info.
	Version string
}

// Metrics are the metrics of one daemon. They implement server.Recorder.
// Methods are safe for concurrent use; Decided and Malformed neither wait nor
// allocate.
type Metrics struct {
	reloads    *prometheus.CounterVec
	lastReload prometheus.Gauge
	stale      prometheus.Gauge
	panics     prometheus.Counter
	streams    prometheus.Counter              // refused ones
	edges      map[server.Edge]edgeMetrics     // read-only after New
	faulty     map[string][]prometheus.Counter // by mapping and reason; read-only after New
	waits      prometheus.Histogram            // nil without Options.Strict
}

var _ server.Recorder = (*Metrics)(nil)

// edgeMetrics are the metrics of one edge, looked up once.
type edgeMetrics struct {
	duration  prometheus.Observer
	malformed prometheus.Counter
}

// The results of a reload or a rejoin.
const (
	resultSuccess = "success"
	resultError   = "error"
)

// New makes the metrics and registers them. The error lists the metrics that
// reg refuses, which happens only if it has others of the same names.
func New(reg prometheus.Registerer, o Options) (*Metrics, error) {
	r := registry{Registerer: reg, families: map[string]Family{waitFamily.Name: waitFamily}}
	for _, f := range daemonFamilies {
		r.families[f.Name] = f
	}
	m := &Metrics{
		reloads:    vec(&r, "rld_config_reloads_total", prometheus.NewCounterVec),
		lastReload: vec(&r, "rld_config_last_reload_success_timestamp_seconds", prometheus.NewGaugeVec).WithLabelValues(),
		stale:      vec(&r, "rld_config_stale", prometheus.NewGaugeVec).WithLabelValues(),
		panics:     vec(&r, "rld_panics_total", prometheus.NewCounterVec).WithLabelValues(),
		streams:    vec(&r, "rld_refused_streams_total", prometheus.NewCounterVec).WithLabelValues(),
		edges:      map[server.Edge]edgeMetrics{},
	}
	m.reloads.WithLabelValues(resultSuccess)
	m.reloads.WithLabelValues(resultError)
	vec(&r, "rld_build_info", prometheus.NewGaugeVec).WithLabelValues(o.Version, runtime.Version()).Set(1)
	// From 1 us, below a decision, to 10 ms, half the usual timeout of Envoy.
	durations := histogram(&r, "rld_decision_duration_seconds",
		1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2)
	malformed := vec(&r, "rld_malformed_total", prometheus.NewCounterVec)
	for _, e := range []server.Edge{server.EdgeRLS, server.EdgeNative, server.EdgeStream, server.EdgeHTTP, server.EdgeRLQS} {
		m.edges[e] = edgeMetrics{durations.WithLabelValues(string(e)), malformed.WithLabelValues(string(e))}
	}
	m.faulty = newFaulty(&r, o.Gateways)
	r.add(newEngineCollector(o.Engine))
	if o.Callers != nil {
		r.add(newCallerCollector(o.Callers))
	}
	r.add(collectors.NewGoCollector())
	r.add(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if o.Connections != nil {
		r.add(newConnectionCollector(o.Connections))
	}
	if o.Cluster != nil {
		r.add(newClusterCollector(o.Cluster))
	}
	if o.Budgets != nil {
		r.add(newBudgetCollector(o.Budgets, o.Engine))
	}
	if o.Control != nil {
		r.add(newControlCollector(o.Control))
	}
	if o.XDS != nil {
		r.add(newXDSCollector(o.XDS))
	}
	if o.Strict != nil {
		m.waits = newWaits(&r)
		r.add(newStrictCollector(o.Strict))
	}
	if err := errors.Join(r.faults...); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}

// registry registers collectors and keeps the errors.
type registry struct {
	prometheus.Registerer
	families map[string]Family
	faults   []error
}

func (r *registry) add(c prometheus.Collector) {
	if err := r.Register(c); err != nil {
		r.faults = append(r.faults, err)
	}
}

// vec makes and registers the counters or gauges of a family.
func vec[O prometheus.CounterOpts | prometheus.GaugeOpts, V prometheus.Collector](
	r *registry, name string, newVec func(O, []string) V,
) V {
	f := r.families[name]
	v := newVec(O{Name: f.Name, Help: f.Help}, f.Labels)
	r.add(v)
	return v
}

// histogram makes and registers the histograms of a family.
func histogram(r *registry, name string, buckets ...float64) *prometheus.HistogramVec {
	f := r.families[name]
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: f.Name, Help: f.Help, Buckets: buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, f.Labels)
	r.add(v)
	return v
}

func newWaits(r *registry) prometheus.Histogram {
	return histogram(r, waitFamily.Name,
		1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 5e-1, 1).WithLabelValues().(prometheus.Histogram)
}

// Reloaded counts a successful load of the limits.
func (m *Metrics) Reloaded(at time.Time) {
	m.reloads.WithLabelValues(resultSuccess).Inc()
	m.lastReload.Set(float64(at.UnixNano()) / 1e9)
	m.stale.Set(0)
}

// ReloadFailed counts a load of invalid limits.
func (m *Metrics) ReloadFailed() {
	m.reloads.WithLabelValues(resultError).Inc()
	m.stale.Set(1)
}

// Waited observes the time that a call waited for the owners of its keys.
func (m *Metrics) Waited(d time.Duration) {
	if m.waits != nil {
		m.waits.Observe(d.Seconds())
	}
}

// Panicked counts a recovered panic. The caller logs the method and the stack.
func (m *Metrics) Panicked(string) { m.panics.Inc() }

// RefusedStream counts a stream of a caller that was refused.
func (m *Metrics) RefusedStream() { m.streams.Inc() }

// Decided observes the duration of a decision. It ignores edges that package
// server does not define, since labels must not grow.
func (m *Metrics) Decided(e server.Edge, took time.Duration) {
	if of, ok := m.edges[e]; ok {
		of.duration.Observe(took.Seconds())
	}
}

// Malformed counts a malformed request; see Decided.
func (m *Metrics) Malformed(e server.Edge) {
	if of, ok := m.edges[e]; ok {
		of.malformed.Inc()
	}
}

// Handler serves the metrics of g as text or protobuf, a few scrapes at a time.
func Handler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4,
		Timeout:             10 * time.Second,
	})
}
