package files

import (
	"encoding/json"
	"fmt"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	mutation "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	luafilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	limits "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
)

// object is an object of Kubernetes.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// readObjects returns the specs of the objects of a file by their kinds.
func readObjects(t *testing.T, file string) map[string]proto.Message {
	t.Helper()
	out := make(map[string]proto.Message)
	for _, text := range documents(t, "istio", file) {
		var o object
		readYAML(t, file, text, &o)
		var spec proto.Message
		switch o.APIVersion + " " + o.Kind {
		case "security.istio.io/v1 AuthorizationPolicy":
			spec = new(security.AuthorizationPolicy)
		case "networking.istio.io/v1alpha3 EnvoyFilter":
			spec = new(networking.EnvoyFilter)
		default:
			t.Fatalf("%s: %s %s is not known here", file, o.APIVersion, o.Kind)
		}
		readJSON(t, file+": "+o.Kind, o.Spec, spec)
		// Policies of the root namespace without a selector are for all.
		if o.Metadata.Name == "" || o.Metadata.Namespace != "istio-system" {
			t.Errorf("%s: %+v", file, o.Metadata)
		}
		out[o.Kind] = spec
	}
	return out
}

// patched are the messages of Envoy that an EnvoyFilter has.
type patched struct {
	filters map[string]proto.Message // by name
	host    *route.VirtualHost
}

// readPatches reads each patch as the message of Envoy that it becomes part of.
func readPatches(t *testing.T, f *networking.EnvoyFilter) *patched {
	t.Helper()
	p := &patched{filters: make(map[string]proto.Message)}
	for _, one := range f.GetConfigPatches() {
		text, err := protojson.Marshal(one.GetPatch().GetValue())
		if err != nil {
			t.Fatal(err)
		}
		switch to := one.GetApplyTo(); to {
		case networking.EnvoyFilter_HTTP_FILTER:
			var filter hcm.HttpFilter
			readJSON(t, to.String(), text, &filter)
			p.filters[filter.GetName()] = unpack(t, filter.GetTypedConfig())
		case networking.EnvoyFilter_VIRTUAL_HOST:
			// Not validated as a whole: it is merged into one.
			p.host = new(route.VirtualHost)
			if err := protojson.Unmarshal(text, p.host); err != nil {
				t.Fatal(err)
			}
			for _, r := range p.host.GetRateLimits() {
				if err := validate(r); err != nil {
					t.Error(err)
				}
			}
		case networking.EnvoyFilter_CLUSTER:
			readJSON(t, to.String(), text, new(cluster.Cluster))
		default:
			t.Fatalf("%v is not known here", to)
		}
	}
	return p
}

// TestIstio holds that the policy names the provider, which asks a mapping with
// target: path, and that clients set none of its headers.
func TestIstio(t *testing.T) {
	var m mesh.MeshConfig
	readProto(t, "mesh.yaml", example(t, "istio", "mesh.yaml"), &m)
	objects := readObjects(t, "policy.yaml")
	policy := objects["AuthorizationPolicy"].(*security.AuthorizationPolicy)
	provider := m.GetExtensionProviders()[0]
	if policy.GetAction() != security.AuthorizationPolicy_CUSTOM || policy.GetProvider().GetName() != provider.GetName() ||
		len(policy.GetRules()) != 1 || len(policy.GetSelector().GetMatchLabels()) == 0 {
		t.Errorf("%v for %v", policy, provider)
	}
	if n := m.GetPathNormalization().GetNormalization(); n != mesh.MeshConfig_ProxyPathNormalization_MERGE_SLASHES {
		t.Errorf("paths are normalized by %v", n)
	}
	a := provider.GetEnvoyExtAuthzHttp()
	if a.GetPathPrefix() != "/v1/forward-auth/edge" || a.GetFailOpen() || a.GetStatusOnError() != "503" || a.GetTimeout() == nil {
		t.Errorf("%v", a)
	}
	p := readPatches(t, objects["EnvoyFilter"].(*networking.EnvoyFilter))
	script := p.filters["envoy.filters.http.lua"].(*luafilter.Lua)
	checkLua(t, script)
	if have, want := script.GetDefaultSourceCode().GetInlineString(), string(example(t, "envoy", "refuse.lua")); have != want {
		t.Errorf("the script is not refuse.lua, but\n%s", have)
	}
	set := map[string]bool{"x-api-key": true}
	for _, m := range p.filters["envoy.filters.http.header_mutation"].(*mutation.HeaderMutation).GetMutations().GetRequestMutations() {
		set[m.GetAppend().GetHeader().GetKey()] = true
	}
	for _, name := range a.GetIncludeRequestHeadersInCheck() {
		if !set[name] {
			t.Errorf("clients can set %s", name)
		}
	}
}

// TestIstioRateLimit makes the calls of the ingress gateway to rld.
func TestIstioRateLimit(t *testing.T) {
	untilTomorrow(t)
	p := readPatches(t, readObjects(t, "ratelimit.yaml")["EnvoyFilter"].(*networking.EnvoyFilter))
	script := p.filters["envoy.filters.http.lua"].(*luafilter.Lua)
	checkLua(t, script)
	filter := p.filters["envoy.filters.http.ratelimit"].(*limits.RateLimit)
	if !filter.GetFailureModeDeny() || filter.GetTimeout() == nil {
		t.Errorf("%v", filter)
	}
	host := &route.Route{
		Match:  &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}},
		Action: &route.Route_Route{Route: &route.RouteAction{RateLimits: p.host.GetRateLimits()}},
	}
	e := &envoy{&envoyConfig{
		limits: filter, routes: &route.RouteConfiguration{VirtualHosts: []*route.VirtualHost{{Routes: []*route.Route{host}}}},
	}, startRLD(t, "istio").grpc, script}
	for i, tt := range []struct {
		request
		sent, want int
	}{
		{request{path: "/v1/orders", header: map[string]string{"x-api-key": "k1"}}, 1010, 1000},
		{request{path: "/v1/orders"}, 1010, 1000},
		{request{path: "/v1?x=;", header: map[string]string{"x-api-key": "k2"}}, 1010, 1000},
		{request{path: "/v1;x/orders", header: map[string]string{"x-api-key": "k3"}}, 13, 0},
		{request{path: "//v1/orders", header: map[string]string{"x-api-key": "k3"}}, 13, 0},
		{request{path: "/v1%2Forders", header: map[string]string{"x-api-key": "k3"}}, 13, 0},
		{request{path: "/other"}, 5010, 5000},
	} {
		tt.address = fmt.Sprintf("192.0.2.%d", i)
		if got := e.admitted(t, tt.sent, tt.request); got != tt.want {
			t.Errorf("%s: %d of %d admitted, want %d", tt.request, got, tt.sent, tt.want)
		}
	}
}
