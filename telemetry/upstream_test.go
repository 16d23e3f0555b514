package telemetry

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// TestUpstream has rules of one, two and three entries, of which the last two
// share their labels, and names with characters of statsd.
func TestUpstream(t *testing.T) {
	e := &engine{tallies: []tally{
		{"edge", "tier=free", quota.Tally{Offered: 9, HitsWithin: 3, HitsNear: 1, HitsOver: 5, HitsShadowed: 2}},
		{"edge", "tier=free", quota.Tally{Offered: 1, HitsWithin: 1}},
		{"edge", "tier > user", quota.Tally{Offered: 2, HitsOver: 2}},
		{"edge", "tier > user > path", quota.Tally{Offered: 4, HitsNear: 4}},
		{"", "", quota.Tally{Offered: 7, HitsOver: 7}},
		{"a:b.c", "ip=10.0.0.1", quota.Tally{Offered: 8}},
	}}
	m, _ := newMetrics(t, e)
	limit := &rules.Limit{Unit: rules.Second, Multiplier: 1, Requests: 10}
	set, err := rules.NewSet([]rules.DomainNode{
		{Name: "edge", Children: []rules.Node{
			{Key: "tier", Value: "free", Limit: limit},
			{Key: "tier", Children: []rules.Node{{Key: "user", Limit: limit, Children: []rules.Node{{Key: "path", Limit: limit}}}}},
		}},
		{Name: "a:b.c", Children: []rules.Node{{Key: "ip", Value: "10.0.0.1", Limit: limit}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.set = set
	m.Decided(server.EdgeRLS, 30*time.Microsecond)
	m.Decided(server.EdgeRLS, 30*time.Microsecond)
	m.Decided(server.EdgeHTTP, time.Second)
	m.Malformed(server.EdgeRLS)
	m.Reloaded(time.Unix(1, 0))
	m.ReloadFailed()
	m.ReloadFailed()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(m.upstream(e))
	const rules = "ratelimit_service_rate_limit_"
	compare(t, reg, `
# HELP ratelimit_service_config_load_error Invalid loads of the limits.
# TYPE ratelimit_service_config_load_error counter
ratelimit_service_config_load_error 2
# HELP ratelimit_service_config_load_success Valid loads of the limits, including the first.
# TYPE ratelimit_service_config_load_success counter
ratelimit_service_config_load_success 1
# HELP ratelimit_service_rate_limit_near_limit Requested hits within the limit and above limits.near_limit_ratio.
# TYPE ratelimit_service_rate_limit_near_limit counter
ratelimit_service_rate_limit_near_limit{domain="a_b",key1="c",key2="ip_10_0_0_1"} 0
ratelimit_service_rate_limit_near_limit{domain="edge",key1="tier",key2="user"} 4
ratelimit_service_rate_limit_near_limit{domain="edge",key1="tier_free",key2=""} 1
# HELP ratelimit_service_rate_limit_over_limit Requested hits over the limit: all hits of a descriptor that does not fit.
# TYPE ratelimit_service_rate_limit_over_limit counter
ratelimit_service_rate_limit_over_limit{domain="a_b",key1="c",key2="ip_10_0_0_1"} 0
ratelimit_service_rate_limit_over_limit{domain="edge",key1="tier",key2="user"} 2
ratelimit_service_rate_limit_over_limit{domain="edge",key1="tier_free",key2=""} 5
# HELP ratelimit_service_rate_limit_shadow_mode Requested hits over the limit that shadow mode of the rule let pass.
# TYPE ratelimit_service_rate_limit_shadow_mode counter
ratelimit_service_rate_limit_shadow_mode{domain="a_b",key1="c",key2="ip_10_0_0_1"} 0
ratelimit_service_rate_limit_shadow_mode{domain="edge",key1="tier",key2="user"} 0
ratelimit_service_rate_limit_shadow_mode{domain="edge",key1="tier_free",key2=""} 2
# HELP ratelimit_service_rate_limit_total_hits Requested hits.
# TYPE ratelimit_service_rate_limit_total_hits counter
ratelimit_service_rate_limit_total_hits{domain="a_b",key1="c",key2="ip_10_0_0_1"} 8
ratelimit_service_rate_limit_total_hits{domain="edge",key1="tier",key2="user"} 6
ratelimit_service_rate_limit_total_hits{domain="edge",key1="tier_free",key2=""} 10
# HELP ratelimit_service_rate_limit_within_limit Requested hits within the limit, near it or not.
# TYPE ratelimit_service_rate_limit_within_limit counter
ratelimit_service_rate_limit_within_limit{domain="a_b",key1="c",key2="ip_10_0_0_1"} 0
ratelimit_service_rate_limit_within_limit{domain="edge",key1="tier",key2="user"} 4
ratelimit_service_rate_limit_within_limit{domain="edge",key1="tier_free",key2=""} 5
ratelimit_service_response_time_seconds_sum{grpc_method="ShouldRateLimit"} 6e-05
ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 2
# HELP ratelimit_service_should_rate_limit_error Malformed calls over gRPC and /json (service_error).
# TYPE ratelimit_service_should_rate_limit_error counter
ratelimit_service_should_rate_limit_error{err_type="service_error"} 1
# HELP ratelimit_service_total_requests Calls of ShouldRateLimit over gRPC and /json that were decided or malformed.
# TYPE ratelimit_service_total_requests counter
ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 3
`, rules+"near_limit", rules+"over_limit", rules+"shadow_mode", rules+"total_hits", rules+"within_limit",
		"ratelimit_service_config_load_error", "ratelimit_service_config_load_success",
		"ratelimit_service_response_time_seconds_sum", "ratelimit_service_response_time_seconds_count",
		"ratelimit_service_should_rate_limit_error", "ratelimit_service_total_requests")
}
