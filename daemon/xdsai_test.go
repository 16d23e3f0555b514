package daemon

import (
	"context"
	"testing"

	envoyratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"

	"github.com/georld/rld/config"
	"github.com/georld/rld/internal/await"
)

// aiQuotas has the form of the limits of Envoy AI Gateway: one domain, a
// backend, and below it a quota of tokens for a model, one for each client of
// another model, and one for each further model.
func aiQuotas() *ratelimit.RateLimitConfig {
	quota := func(key, value string, tokens uint32, below ...*ratelimit.RateLimitDescriptor) *ratelimit.RateLimitDescriptor {
		d := &ratelimit.RateLimitDescriptor{Key: key, Value: value, Descriptors: below}
		if tokens > 0 {
			d.QuotaMode = true
			d.RateLimit = &ratelimit.RateLimitPolicy{Unit: ratelimit.RateLimitUnit_DAY, RequestsPerUnit: tokens}
		}
		return d
	}
	return &ratelimit.RateLimitConfig{Name: "ai-gateway-quota", Domain: "ai-gateway-quota", Descriptors: []*ratelimit.RateLimitDescriptor{
		quota("backend_name", "default/openai", 0,
			quota("model_name_override", "small", 10),
			quota("model_name_override", "large", 0, quota("rule-0-x-client-match-0", "", 20), quota("rule-1-match--1", "rule-1-match--1", 30)),
			quota("model_name_override", "", 40)),
	}}
}

// TestEnvoyAIGateway starts a daemon with the environment of the deployment of
// Envoy AI Gateway: limits come in plain text. A request costs a hit, and when
// its response is complete another call charges its tokens.
func TestEnvoyAIGateway(t *testing.T) {
	s := newXDSServer(t)
	s.node = "envoy-ai-gateway-ratelimit"
	snapshot, err := cache.NewSnapshot("1", map[resource.Type][]types.Resource{resource.RateLimitConfigType: {aiQuotas()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cache.SetSnapshot(context.Background(), s.node, snapshot); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Sources{Upstream: true, Environ: []string{
		"PORT=0", "GRPC_PORT=0", "RLD_ADMIN_ADDR=127.0.0.1:0", // in place of the usual ports
		"LOG_LEVEL=debug", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=redis.redis-system.svc.cluster.local:6379",
		"RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit", "USE_STATSD=false",
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_NODE_ID=envoy-ai-gateway-ratelimit", "CONFIG_GRPC_XDS_SERVER_URL=" + s.addr,
		"FORCE_START_WITHOUT_INITIAL_CONFIG=true", // the first limits come later, but the test waits for them
		"RLD_CHARGE_DENIED=true",                  // tokens are used, whether they fit or not
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := startDaemon(t, loaded.Config)
	t.Cleanup(r.closeState)
	await.True(t, "the limits are in force", func() bool { return len(r.engine.Rules().Rules()) == 6 })
	client := rlsv3.NewRateLimitServiceClient(dial(t, r.edges.grpcAddr()))
	call := func(tokens uint32, entries ...string) bool {
		t.Helper()
		d := &envoyratelimit.RateLimitDescriptor{}
		for i := 0; i < len(entries); i += 2 {
			d.Entries = append(d.Entries, &envoyratelimit.RateLimitDescriptor_Entry{Key: entries[i], Value: entries[i+1]})
		}
		got, err := client.ShouldRateLimit(t.Context(), &rlsv3.RateLimitRequest{
			Domain: "ai-gateway-quota", Descriptors: []*envoyratelimit.RateLimitDescriptor{d}, HitsAddend: tokens,
		})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetOverallCode() == rlsv3.RateLimitResponse_OK
	}
	of := func(model string, more ...string) []string {
		return append([]string{"backend_name", "default/openai", "model_name_override", model}, more...)
	}
	for i, tt := range []struct {
		entries []string
		tokens  uint32 // of the response
		want    bool   // whether the request is admitted
	}{
		{of("small"), 6, true},
		{of("small"), 100, true}, // 8 of 10 before: the tokens are used, whatever is left
		{of("small"), 1, false},
		{of("other"), 38, true},
		{of("other"), 5, true},
		{of("other"), 5, false},
		{of("third"), 5, true}, // each further model has a quota of its own
		{of("large", "rule-0-x-client-match-0", "a"), 25, true},
		{of("large", "rule-0-x-client-match-0", "a"), 1, false},
		{of("large", "rule-0-x-client-match-0", "b"), 1, true},
		{of("large", "rule-1-match--1", "rule-1-match--1"), 29, true},
		{of("large", "rule-1-match--1", "rule-1-match--1"), 1, false},
	} {
		if got := call(0, tt.entries...); got != tt.want {
			t.Errorf("%d: request %v admitted: %v, want %v", i, tt.entries, got, tt.want)
		} else if got {
			call(tt.tokens, tt.entries...)
		}
	}
}
