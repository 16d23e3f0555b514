package telemetry

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// ruleLabelsOfUpstream are the labels of upstream's series of rules. Deeper
// rules share the series of their first two entries, as there.
var ruleLabelsOfUpstream = []string{"domain", "key1", "key2"}

// upstreamFamilies are metrics of envoyproxy/ratelimit, under the names and
// labels of its default mapping. They repeat counters of other families.
var upstreamFamilies = []Family{
	{"ratelimit_service_rate_limit_total_hits", Counter, ruleLabelsOfUpstream, "Requested hits."},
	{"ratelimit_service_rate_limit_within_limit", Counter, ruleLabelsOfUpstream, "Requested hits within the limit, near it or not."},
	{"ratelimit_service_rate_limit_near_limit", Counter, ruleLabelsOfUpstream, "Requested hits within the limit and above limits.near_limit_ratio."},
	{"ratelimit_service_rate_limit_over_limit", Counter, ruleLabelsOfUpstream, "Requested hits over the limit: all hits of a descriptor that does not fit."},
	{"ratelimit_service_rate_limit_shadow_mode", Counter, ruleLabelsOfUpstream, "Requested hits over the limit that shadow mode of the rule let pass."},
	{"ratelimit_service_should_rate_limit_error", Counter, []string{"err_type"}, "Malformed calls over gRPC and /json (service_error)."},
	{"ratelimit_service_total_requests", Counter, []string{"grpc_method"}, "Calls of ShouldRateLimit over gRPC and /json that were decided or malformed."},
	{"ratelimit_service_response_time_seconds", Histogram, []string{"grpc_method"}, "Time from the decoded request to the decision of ShouldRateLimit over gRPC and /json, in seconds."},
	{"ratelimit_service_config_load_success", Counter, nil, "Valid loads of the limits, including the first."},
	{"ratelimit_service_config_load_error", Counter, nil, "Invalid loads of the limits."},
}

// The values of labels of upstreamFamilies.
const (
	serviceError    = "service_error"
	shouldRateLimit = "ShouldRateLimit"
)

// upstreamCollector exports upstreamFamilies.
type upstreamCollector struct {
	*collector
	metrics *Metrics
	engine  Engine
}

// Upstream gathers metrics under the names of envoyproxy/ratelimit, from the
// counters of m and e.
func (m *Metrics) Upstream(e Engine) prometheus.Gatherer {
	reg := prometheus.NewRegistry()
	reg.MustRegister(m.upstream(e)) // the only one there
	return reg
}

func (m *Metrics) upstream(e Engine) *upstreamCollector {
	return &upstreamCollector{newCollector(upstreamFamilies, nil), m, e}
}

// Collect implements prometheus.Collector.
func (c *upstreamCollector) Collect(ch chan<- prometheus.Metric) {
	sums := c.sums()
	for _, l := range slices.SortedFunc(maps.Keys(sums), upstreamRule.compare) {
		t := sums[l]
		for _, v := range []struct {
			name string
			n    uint64
		}{
			{"total_hits", t.Offered},
			{"within_limit", t.HitsWithin + t.HitsNear},
			{"near_limit", t.HitsNear},
			{"over_limit", t.HitsOver},
			{"shadow_mode", t.HitsShadowed},
		} {
			c.put(ch, "ratelimit_service_rate_limit_"+v.name, float64(v.n), l.domain, l.key1, l.key2)
		}
	}
	edge := c.metrics.edges[server.EdgeRLS]
	malformed := counted(edge.malformed)
	c.put(ch, "ratelimit_service_should_rate_limit_error", malformed, serviceError)
	c.put(ch, "ratelimit_service_config_load_success", counted(c.metrics.reloads.WithLabelValues(resultSuccess)))
	c.put(ch, "ratelimit_service_config_load_error", counted(c.metrics.reloads.WithLabelValues(resultError)))
	h := written(edge.duration).GetHistogram()
	c.put(ch, "ratelimit_service_total_requests", float64(h.GetSampleCount())+malformed, shouldRateLimit)
	buckets := make(map[float64]uint64, len(h.GetBucket()))
	for _, b := range h.GetBucket() {
		buckets[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	of := c.families["ratelimit_service_response_time_seconds"]
	ch <- prometheus.MustNewConstHistogram(of.Desc, h.GetSampleCount(), h.GetSampleSum(), buckets, shouldRateLimit)
}

// put writes one series.
func (c *upstreamCollector) put(ch chan<- prometheus.Metric, name string, v float64, labels ...string) {
	of := c.families[name]
	ch <- prometheus.MustNewConstMetric(of.Desc, of.ValueType, v, labels...)
}

// sums returns the outcomes by the labels of upstream. Limits of requests,
// which have no rule, are not among them: their labels are text of requests
// there.
func (c *upstreamCollector) sums() map[upstreamRule]quota.Tally {
	of := make(map[ruleLabels]upstreamRule)
	for _, r := range c.engine.Rules().Rules() {
		of[ruleLabels{r.Domain, r.Path}] = upstreamRuleOf(r)
	}
	sums := make(map[upstreamRule]quota.Tally)
	for l, t := range tallies(c.engine) {
		if u, ok := of[l]; ok {
			sums[u] = sums[u].Plus(t)
		}
	}
	return sums
}

// upstreamRule are the labels of a rule; an empty one is none.
type upstreamRule struct{ domain, key1, key2 string }

func (l upstreamRule) compare(o upstreamRule) int {
	return cmp.Or(cmp.Compare(l.domain, o.domain), cmp.Compare(l.key1, o.key1), cmp.Compare(l.key2, o.key2))
}

// upstreamRuleOf returns the labels of a rule. Upstream joins the domain and
// the entries with dots and splits the name at dots, also at those of a domain
// or a value.
func upstreamRuleOf(r *rules.Rule) upstreamRule {
	name := []string{r.Domain}
	for _, e := range r.Entries {
		if e.Value != "" {
			e.Key += "_" + e.Value
		}
		name = append(name, e.Key)
	}
	parts := strings.SplitN(upstreamName(strings.Join(name, ".")), ".", 4)
	parts = append(parts, "", "")
	return upstreamRule{parts[0], parts[1], parts[2]}
}

var (
	upstreamReserved = strings.NewReplacer(":", "_", "|", "_")
	upstreamIPv4     = regexp.MustCompile(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)
)

// upstreamName replaces characters of a name of statsd as upstream does.
func upstreamName(s string) string {
	return upstreamIPv4.ReplaceAllStringFunc(upstreamReserved.Replace(s), func(ip string) string {
		return strings.ReplaceAll(ip, ".", "_")
	})
}

// counted returns the value of a counter.
func counted(c prometheus.Counter) float64 { return written(c).GetCounter().GetValue() }

// written returns the state of a counter or a histogram of this package.
func written(o any) *dto.Metric {
	var out dto.Metric
	if m, ok := o.(prometheus.Metric); ok {
		_ = m.Write(&out) // fails for a value that is not UTF-8 only, which these do not have
	}
	return &out
}
