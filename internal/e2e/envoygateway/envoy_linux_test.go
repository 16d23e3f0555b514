//go:build e2e

package envoygateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	ratelimitcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitfilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/georld/rld/internal/certs"
)

// envoy is in the place of Envoy: it has its configuration and calls rld.
type envoy struct {
	*host
	tls    *tls.Config
	domain string
	limits []*routev3.RateLimit // of the route
	rls    rlsv3.RateLimitServiceClient
}

// newEnvoy has the certificates of Envoy, and calls rld on the same host.
func newEnvoy(t *testing.T, h *host, certDir string) *envoy {
	t.Helper()
	own, err := certs.Read(certs.Files{
		Cert: filepath.Join(certDir, "tls.crt"), Key: filepath.Join(certDir, "tls.key"), CA: filepath.Join(certDir, "ca.crt"),
	})
	if err != nil {
		t.Fatal(err)
	}
	e := &envoy{host: h, tls: &tls.Config{Certificates: []tls.Certificate{own.Cert}, RootCAs: own.CA, MinVersion: tls.VersionTLS12}}
	e.rls = rlsv3.NewRateLimitServiceClient(e.client(t, "127.0.0.1:8081", "envoy-ratelimit.envoy-gateway-system"))
	return e
}

// client returns a connection that is made when it is needed.
func (e *envoy) client(t *testing.T, addr, name string) *grpc.ClientConn {
	t.Helper()
	c := e.tls.Clone()
	c.ServerName = name
	cc, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(c)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return e.dial(ctx, addr) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

// configure gets the listener and the routes of Envoy.
func (e *envoy) configure(t *testing.T, server string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cc := e.client(t, server, "envoy-gateway")
	defer cc.Close()
	e.domain, e.limits = "", nil
	err := fetch(ctx, cc, resource.ListenerType, func(l *listenerv3.Listener) { e.domain = domainOf(l) })
	if err == nil {
		err = fetch(ctx, cc, resource.RouteType, func(r *routev3.RouteConfiguration) {
			for _, host := range r.GetVirtualHosts() {
				for _, route := range host.GetRoutes() {
					e.limits = append(e.limits, limitsOf(route)...)
				}
			}
		})
	}
	if err == nil && (e.domain == "" || len(e.limits) == 0) {
		err = fmt.Errorf("domain %q and %d limits: want some", e.domain, len(e.limits))
	}
	return err
}

// fetch gets all resources of a type, once.
func fetch[T any, M interface {
	*T
	proto.Message
}](ctx context.Context, cc *grpc.ClientConn, kind string, use func(M)) error {
	s, err := discovery.NewAggregatedDiscoveryServiceClient(cc).StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	q := &discovery.DiscoveryRequest{TypeUrl: kind, Node: &corev3.Node{Id: "test", Cluster: "default/eg"}}
	if err := s.Send(q); err != nil {
		return err
	}
	r, err := s.Recv()
	if err != nil {
		return err
	}
	for _, a := range r.GetResources() {
		m := M(new(T))
		if err := a.UnmarshalTo(m); err != nil {
			return err
		}
		use(m)
	}
	return nil
}

// domainOf returns the domain of the rate limit filter of a listener, "" for
// none.
func domainOf(l *listenerv3.Listener) string {
	for _, chain := range append(l.GetFilterChains(), l.GetDefaultFilterChain()) {
		for _, f := range chain.GetFilters() {
			m := &hcm.HttpConnectionManager{}
			if f.GetTypedConfig().UnmarshalTo(m) != nil {
				continue // another filter
			}
			for _, h := range m.GetHttpFilters() {
				if r := filterOf[ratelimitfilter.RateLimit](h.GetTypedConfig()); r != nil {
					return r.GetDomain()
				}
			}
		}
	}
	return ""
}

// limitsOf returns the rate limits of a route.
func limitsOf(r *routev3.Route) []*routev3.RateLimit {
	for _, a := range r.GetTypedPerFilterConfig() {
		if p := filterOf[ratelimitfilter.RateLimitPerRoute](a); p != nil {
			return p.GetRateLimits()
		}
	}
	return r.GetRoute().GetRateLimits()
}

// filterOf returns the configuration of a filter, nil if it is of another type.
func filterOf[T any, M interface {
	*T
	proto.Message
}](a *anypb.Any) M {
	m := M(new(T))
	if a.UnmarshalTo(m) != nil {
		return nil
	}
	return m
}

// descriptors returns those of a request with headers.
func (e *envoy) descriptors(headers map[string]string) (all []*ratelimitcommon.RateLimitDescriptor, err error) {
	for _, l := range e.limits {
		d := &ratelimitcommon.RateLimitDescriptor{}
		complete := true
		for _, a := range l.GetActions() {
			key, value := "", ""
			switch k := a.GetActionSpecifier().(type) {
			case *routev3.RateLimit_Action_GenericKey_:
				key, value = k.GenericKey.GetDescriptorKey(), k.GenericKey.GetDescriptorValue()
			case *routev3.RateLimit_Action_RequestHeaders_:
				key, value = k.RequestHeaders.GetDescriptorKey(), headers[k.RequestHeaders.GetHeaderName()]
				complete = complete && value != ""
			default:
				return nil, fmt.Errorf("an action of type %T: the test knows none of these", k)
			}
			d.Entries = append(d.Entries, &ratelimitcommon.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		if complete {
			all = append(all, d)
		}
	}
	return all, nil
}

// admitted sends requests of a user until one is denied, n at most, and returns
// how many were admitted.
func (e *envoy) admitted(t *testing.T, user string, n int) int {
	t.Helper()
	d, err := e.descriptors(map[string]string{"x-user-id": user})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r, err := e.rls.ShouldRateLimit(t.Context(), &rlsv3.RateLimitRequest{Domain: e.domain, Descriptors: d}, grpc.WaitForReady(true))
		switch {
		case err != nil:
			t.Fatal(err)
		case r.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT:
			return i
		}
	}
	return n
}
