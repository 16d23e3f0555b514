package files

import (
	"net/url"
	"strings"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	extauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	mutation "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	tometadata "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	lua "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	limits "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	setmetadata "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_metadata/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcplimits "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// envoyConfig is the part of a configuration of Envoy that the tests need.
type envoyConfig struct {
	*bootstrap.Bootstrap
	routes  *route.RouteConfiguration
	filters []*hcm.HttpFilter
	limits  *limits.RateLimit
	tcp     *tcplimits.RateLimit
}

// readEnvoy reads a configuration with the protos of Envoy.
func readEnvoy(t *testing.T, file string) *envoyConfig {
	t.Helper()
	c := &envoyConfig{Bootstrap: new(bootstrap.Bootstrap)}
	readProto(t, file, example(t, "envoy", file), c.Bootstrap)
	for _, l := range c.GetStaticResources().GetListeners() {
		for _, chain := range l.GetFilterChains() {
			for _, f := range chain.GetFilters() {
				c.readFilter(t, f)
			}
		}
	}
	return c
}

func (c *envoyConfig) readFilter(t *testing.T, f *listener.Filter) {
	t.Helper()
	switch m := unpack(t, f.GetTypedConfig()).(type) {
	case *hcm.HttpConnectionManager:
		c.routes, c.filters = m.GetRouteConfig(), m.GetHttpFilters()
		if !m.GetUseRemoteAddress().GetValue() || !m.GetNormalizePath().GetValue() || !m.GetMergeSlashes() {
			t.Error("clients choose their address, or paths that routes do not see")
		}
		if l := filterOf[*limits.RateLimit](t, c); l != nil {
			c.limits = l
		}
	case *tcplimits.RateLimit:
		c.tcp = m
	}
}

func unpack(t *testing.T, a *anypb.Any) proto.Message {
	t.Helper()
	m, err := a.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// filterOf returns the configuration of an HTTP filter, nil for none.
func filterOf[M proto.Message](t *testing.T, c *envoyConfig) (found M) {
	t.Helper()
	for _, f := range c.filters {
		if m, ok := unpack(t, f.GetTypedConfig()).(M); ok {
			found = m
		}
	}
	return found
}

// TestEnvoy holds that Envoy asks rld and has the settings that its page
// describes.
func TestEnvoy(t *testing.T) {
	c := readEnvoy(t, "envoy.yaml")
	switch l := c.limits; {
	case l == nil || c.tcp == nil:
		t.Fatal("there is no filter of rate limits")
	case !l.GetFailureModeDeny(), l.GetStatusOnError().GetCode() != 503, l.GetRateLimitedStatus().GetCode() != 429,
		l.GetEnableXRatelimitHeaders() != limits.RateLimit_DRAFT_VERSION_03, l.GetTimeout().AsDuration().Milliseconds() != 200:
		t.Errorf("%v", l)
	case len(l.GetResponseHeadersToAdd()) == 0 || !c.tcp.GetFailureModeDeny():
		t.Errorf("%v, %v", l, c.tcp)
	}
	used := []string{
		c.limits.GetRateLimitService().GetGrpcService().GetEnvoyGrpc().GetClusterName(),
		c.tcp.GetRateLimitService().GetGrpcService().GetEnvoyGrpc().GetClusterName(),
	}
	for _, r := range c.routes.GetVirtualHosts()[0].GetRoutes() {
		used = append(used, r.GetRoute().GetCluster())
	}
	c.checkClusters(t, used...)
	checkLua(t, filterOf[*lua.Lua](t, c))
	rules := filterOf[*tometadata.Config](t, c).GetResponseRules()
	if len(rules) != 1 || !rules[0].GetRemove() || filterOf[*setmetadata.Config](t, c) == nil {
		t.Errorf("%v", rules)
	}
}

// TestEnvoyAuthz holds that the question of ext_authz goes to a mapping with
// target: path, and that clients set none of its headers.
func TestEnvoyAuthz(t *testing.T) {
	c := readEnvoy(t, "ext-authz.yaml")
	a := filterOf[*extauthz.ExtAuthz](t, c)
	service := a.GetHttpService()
	uri, err := url.Parse(service.GetServerUri().GetUri())
	if err != nil || uri.Host != "127.0.0.1:8080" {
		t.Errorf("%v, %v", uri, err)
	}
	c.checkClusters(t, service.GetServerUri().GetCluster(), c.routes.GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetCluster())
	name, ok := strings.CutPrefix(service.GetPathPrefix(), "/v1/forward-auth/")
	var settings struct {
		Gateways map[string]struct {
			Target string `json:"target"`
		} `json:"gateways"`
	}
	readLoose(t, example(t, "envoy", "rld.yaml"), &settings)
	if !ok || settings.Gateways[name].Target != "path" {
		t.Errorf("path_prefix %s and the mappings %v", service.GetPathPrefix(), settings.Gateways)
	}
	if a.GetFailureModeAllow() || a.GetStatusOnError().GetCode() != 503 {
		t.Error("it fails open, or not with 503")
	}
	set := make(map[string]bool)
	for _, m := range filterOf[*mutation.HeaderMutation](t, c).GetMutations().GetRequestMutations() {
		set[m.GetAppend().GetHeader().GetKey()] = true
	}
	for _, p := range a.GetAllowedHeaders().GetPatterns() {
		if name := p.GetExact(); name != "x-api-key" && !set[name] {
			t.Errorf("clients can set %s", p)
		}
	}
	checkLua(t, filterOf[*lua.Lua](t, c))
}

// checkClusters fails for a cluster that there is not, and for one that is not
// used.
func (c *envoyConfig) checkClusters(t *testing.T, used ...string) {
	t.Helper()
	have := make(map[string]bool)
	for _, cluster := range c.GetStaticResources().GetClusters() {
		have[cluster.GetName()] = false
	}
	for _, name := range used {
		if _, ok := have[name]; !ok {
			t.Errorf("there is no cluster %q", name)
		}
		have[name] = true
	}
	for name, used := range have {
		if !used {
			t.Errorf("the cluster %q is not used", name)
		}
	}
}
