package telemetry

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collector exports the families of one source at each scrape.
type collector struct {
	families map[string]described
	// read writes all series of a scrape.
	read func(*writer)
}

// described is a family with its descriptor.
type described struct {
	*prometheus.Desc
	prometheus.ValueType
}

func newCollector(families []Family, read func(*writer)) *collector {
	c := &collector{families: make(map[string]described, len(families)), read: read}
	for _, f := range families {
		kind := prometheus.CounterValue
		if f.Kind == Gauge {
			kind = prometheus.GaugeValue
		}
		c.families[f.Name] = described{prometheus.NewDesc(f.Name, f.Help, f.Labels, nil), kind}
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range c.families {
		ch <- f.Desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) { c.read(&writer{c.families, ch}) }

// writer writes the series of one scrape. It belongs to one goroutine.
type writer struct {
	families map[string]described
	ch       chan<- prometheus.Metric
}

// float writes one series. The name is that of a family without "rld_", and the
// labels are in the order of the family.
func (w *writer) float(name string, v float64, labels ...string) {
	f := w.families["rld_"+name]
	w.ch <- prometheus.MustNewConstMetric(f.Desc, f.ValueType, v, labels...)
}

// put writes a number as float does.
func put[N int | int64 | uint64](w *writer, name string, n N, labels ...string) {
	w.float(name, float64(n), labels...)
}

// known writes a duration in seconds, unless it is negative, which means
// unknown.
func (w *writer) known(name string, d time.Duration, labels ...string) {
	if d >= 0 {
		w.float(name, d.Seconds(), labels...)
	}
}

// Text that comes from peers is bounded before it becomes a label. A cluster
// without faults stays below the bounds. Further values are summed up under
// otherLabel.
const (
	maxRegions = 64
	maxReasons = 32
	otherLabel = "other"
)

// reasons writes one count for each reason.
func (w *writer) reasons(name string, counts map[string]uint64) {
	sums := make(map[string]uint64, len(counts))
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		label := labelText(reason)
		if _, ok := sums[label]; !ok && len(sums) >= maxReasons {
			label = otherLabel
		}
		sums[label] += counts[reason]
	}
	for label, n := range sums {
		put(w, name, n, label)
	}
}

// labelText returns text of a peer as a label, which must be UTF-8.
func labelText(s string) string {
	const most = 128 // bytes
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "?")
}
