package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/server"
)

var _ server.Recorder = (*Recorder)(nil)

// Recorder counts what the edges did. It implements server.Recorder: it
// neither waits nor allocates, since everything an edge needs is looked up
// once, here.
type Recorder struct {
	duration  *prometheus.HistogramVec
	malformed *prometheus.CounterVec
	edges     map[server.Edge]edgeMetrics // never written after newRecorder
}

type edgeMetrics struct {
	duration  prometheus.Observer
	malformed prometheus.Counter
}

// durationBuckets go from 1 us, below a decision, to 10 ms, half of what
// Envoy waits for an answer.
var durationBuckets = []float64{
	1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2,
}

func newRecorder() *Recorder {
	labels := []string{"edge"}
	r := &Recorder{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                            "rld_decision_duration_seconds",
			Help:                            "Time from the parsed question to the answer; once a frame on streams.",
			Buckets:                         durationBuckets,
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}, labels),
		malformed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rld_malformed_total",
			Help: "Questions refused unread because they were malformed, by edge.",
		}, labels),
		edges: make(map[server.Edge]edgeMetrics),
	}
	for _, e := range []server.Edge{server.EdgeRLS, server.EdgeNative, server.EdgeStream, server.EdgeHTTP} {
		r.edges[e] = edgeMetrics{
			duration:  r.duration.WithLabelValues(string(e)),
			malformed: r.malformed.WithLabelValues(string(e)),
		}
	}
	return r
}

// Decided notes how long a decision took. An edge that package server does
// not name is not counted: a label must not grow.
func (r *Recorder) Decided(e server.Edge, took time.Duration) {
	if m, ok := r.edges[e]; ok {
		m.duration.Observe(took.Seconds())
	}
}

// Malformed counts a malformed question; see Decided.
func (r *Recorder) Malformed(e server.Edge) {
	if m, ok := r.edges[e]; ok {
		m.malformed.Inc()
	}
}
