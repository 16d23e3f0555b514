package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	envoyratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/georld/rld/config"
	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/internal/certs"
	"github.com/georld/rld/internal/certs/certstest"
)

// xdsServer is an xDS server on loopback.
type xdsServer struct {
	t     *testing.T
	cache cache.SnapshotCache
	addr  string
	node  string
	stop  func()
}

func newXDSServer(t *testing.T, o ...grpc.ServerOption) *xdsServer {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &xdsServer{t: t, cache: cache.NewSnapshotCache(true, cache.IDHash{}, nil), addr: lis.Addr().String(), node: "default"}
	ctx, cancel := context.WithCancel(context.Background())
	g := grpc.NewServer(o...)
	discovery.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, s.cache, nil))
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(lis) })
	s.stop = func() {
		g.Stop()
		cancel()
		serving.Wait()
	}
	t.Cleanup(s.stop)
	return s
}

// set makes a limit per minute of each user of the domain edge the limits.
func (s *xdsServer) set(version string, unit ratelimit.RateLimitUnit, requests uint32) {
	s.t.Helper()
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: {&ratelimit.RateLimitConfig{
		Name: "edge", Domain: "edge", Descriptors: []*ratelimit.RateLimitDescriptor{
			{Key: "user", RateLimit: &ratelimit.RateLimitPolicy{Unit: unit, RequestsPerUnit: requests}},
		},
	}}})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cache.SetSnapshot(context.Background(), s.node, snapshot); err != nil {
		s.t.Fatal(err)
	}
}

// fromXDS returns the settings of a daemon with the limits of a server.
func fromXDS(t *testing.T, addr string) config.Config {
	t.Helper()
	c := testConfig(t, "")
	c.Limits.Path = ""
	c.Limits.XDS.Server, c.Limits.XDS.BackoffMin, c.Limits.XDS.BackoffMax = addr, 100*time.Millisecond, time.Second
	return c
}

// limit returns the limit of the only rule, -1 for other rules.
func (r *running) limit() int {
	all := r.engine.Rules().Rules()
	if len(all) != 1 || all[0].Limit == nil {
		return -1
	}
	return int(all[0].Limit.Requests)
}

// TestXDS: a daemon that may start without limits has those of the server as
// they change, and keeps the former ones when it refuses some.
func TestXDS(t *testing.T) {
	s := newXDSServer(t)
	c := fromXDS(t, s.addr)
	c.Limits.XDS.StartWithoutLimits = true
	r := startDaemon(t, c)
	t.Cleanup(r.closeState)
	if n := len(r.engine.Rules().Rules()); n != 0 {
		t.Errorf("%d rules at the start, want none", n)
	}
	s.set("1", ratelimit.RateLimitUnit_MINUTE, 5)
	await.True(t, "the limits are in force", func() bool { return r.limit() == 5 })
	s.set("2", ratelimit.RateLimitUnit_UNKNOWN, 6)
	await.True(t, "a fault", func() bool { return r.limits.fault() != "" })
	if got := r.limits.fault(); !strings.Contains(got, "descriptors[0].rate_limit") || r.limit() != 5 {
		t.Errorf("fault %s, limit %d", got, r.limit())
	}
	text := scrape(t, "http://"+r.edges.adminAddr()+"/metrics")
	for _, want := range []string{"rld_xds_connected 1", `rld_xds_responses_total{result="success"} 1`, "rld_config_stale 1"} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("metrics lack %s:\n%s", want, text)
		}
	}
	s.set("3", ratelimit.RateLimitUnit_HOUR, 7)
	await.True(t, "the limits are in force", func() bool { return r.limit() == 7 && r.limits.fault() == "" })
}

// TestXDSOverlay: the fields of an overlay are in force beside those of the
// server, a change applies, and an invalid one does not.
func TestXDSOverlay(t *testing.T) {
	s := newXDSServer(t)
	s.set("1", ratelimit.RateLimitUnit_MINUTE, 5)
	c := fromXDS(t, s.addr)
	c.Limits.XDS.StartWithoutLimits = true
	c.Limits.XDS.Overlay = filepath.Join(t.TempDir(), "overlay.yaml")
	write := func(text string) {
		if err := os.WriteFile(c.Limits.XDS.Overlay, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("edge: {user: {algorithm: token_bucket, burst: 9}}")
	r := startDaemon(t, c)
	t.Cleanup(r.closeState)
	burst := func() int {
		if r.limit() != 5 {
			return -1
		}
		return int(r.engine.Rules().Rules()[0].Limit.Burst)
	}
	await.True(t, "the overlay is in force", func() bool { return burst() == 9 })
	write("edge: {user: {algorithm: token_bucket, burst: 10}}")
	await.True(t, "the change is in force", func() bool { return burst() == 10 })
	write("edge: {user: {burst: 11}}")
	await.True(t, "the overlay is refused", func() bool { return strings.Contains(r.log.String(), "overlay.yaml:1:22: burst is") })
	write("edge: {user: {requests_per_unit: 11}, org: {scope: node}}")
	r.limits.reload()
	if !strings.Contains(r.log.String(), "is no field of an overlay") || burst() != 10 {
		t.Errorf("burst %d, log %s", burst(), r.log)
	}
	write("org: {user: {scope: node}}")
	r.limits.reload()
	if !strings.Contains(r.log.String(), "the server has no limit") || burst() != 0 {
		t.Errorf("burst %d, log %s", burst(), r.log)
	}
}

// TestXDSFirst: a daemon waits for its first limits before it accepts calls,
// keeps them in the folder, and starts with them when the server is away.
func TestXDSFirst(t *testing.T) {
	s := newXDSServer(t)
	c := fromXDS(t, s.addr)
	c.Limits.XDS.Dir = t.TempDir()
	var log lockedBuffer
	run := func() (h <-chan *Handle, stop func() error) {
		ctx, cancel := context.WithCancel(context.Background())
		handles, done := make(chan *Handle, 1), make(chan error, 1)
		o := Options{Config: c, Log: slog.New(slog.NewTextHandler(&log, nil)), Out: io.Discard, Started: func(h *Handle) { handles <- h }}
		go func() { done <- Run(ctx, o) }()
		return handles, func() error {
			cancel()
			return await.Value(t, "the end of the daemon", done)
		}
	}
	_, stop := run()
	await.True(t, "it waits", func() bool { return strings.Contains(log.String(), "waiting for the first limits") })
	if err := stop(); err == nil || !strings.Contains(err.Error(), "stopped before the xDS server "+s.addr) {
		t.Errorf("error %v", err)
	}
	started, stop := run()
	s.set("1", ratelimit.RateLimitUnit_MINUTE, 5)
	h := await.Value(t, "the start", started)
	if n := len(h.Engine().Rules().Rules()); n != 1 {
		t.Errorf("%d rules", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	s.stop()
	started, stop = run()
	h = await.Value(t, "the start without the server", started)
	if n := len(h.Engine().Rules().Rules()); n != 1 {
		t.Errorf("%d rules", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestXDSReplicas: the daemons of a region that receive the same limits have
// rules of the same hash, as with equal files, and other ones differ.
func TestXDSReplicas(t *testing.T) {
	s := newXDSServer(t)
	s.set("1", ratelimit.RateLimitUnit_MINUTE, 5)
	other := newXDSServer(t)
	other.set("17", ratelimit.RateLimitUnit_MINUTE, 5)
	var proposed []string
	for i, addr := range []string{s.addr, other.addr} {
		c := fromXDS(t, addr)
		c.Region, c.Name = "us", fmt.Sprint("us-", i)
		c.Peer.Addr, c.Swim.Addr = "127.0.0.1:0", "127.0.0.1:0"
		r := &running{daemon: &daemon{Options: Options{Config: c, Log: slog.New(slog.DiscardHandler)}}}
		if err := r.build(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.closeState)
		if err := r.limits.await(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.active.mu.Lock()
		proposed = append(proposed, r.active.own.Hash)
		r.active.mu.Unlock()
	}
	if proposed[0] != proposed[1] {
		t.Errorf("hashes %v: want equal ones of equal limits", proposed)
	}
}

// TestEnvoyGateway starts a daemon with the environment of the rate limit
// deployment of Envoy Gateway: it is ready by /healthcheck before it has
// limits, gets them over TLS of both ends, and answers Envoy over TLS. Its
// metrics have the names of that deployment.
func TestEnvoyGateway(t *testing.T) {
	f := certstest.New(t, nil).Write(t, t.TempDir(), func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} })
	own, err := certs.Read(certs.Files{Cert: f.Cert, Key: f.Key, CA: f.CA})
	if err != nil {
		t.Fatal(err)
	}
	s := newXDSServer(t, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own.Cert}, ClientCAs: own.CA, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	s.node = "envoy-ratelimit"
	loaded, err := config.Load(config.Sources{Upstream: true, Environ: []string{
		"PORT=0", "GRPC_PORT=0", "RLD_ADMIN_ADDR=127.0.0.1:0", // in place of the usual ports
		"RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_IGNOREDOTFILES=true", "RUNTIME_WATCH_ROOT=false",
		"LOG_LEVEL=info", "USE_STATSD=false",
		"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0", "PROMETHEUS_MAPPER_YAML=/etc/statsd-exporter/conf.yaml",
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL=" + s.addr, "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit",
		"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=" + f.Cert, "GRPC_SERVER_TLS_KEY=" + f.Key, "GRPC_SERVER_TLS_CA_CERT=" + f.CA,
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=" + f.Cert, "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=" + f.Key,
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT=" + f.CA, "FORCE_START_WITHOUT_INITIAL_CONFIG=true",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=redis.redis.svc:6379",
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := startDaemon(t, loaded.Config)
	t.Cleanup(r.closeState)
	answer, err := http.Get("http://" + r.edges.httpAddr() + "/healthcheck")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("/healthcheck: %s", answer.Status)
	}
	s.set("1", ratelimit.RateLimitUnit_DAY, 1)
	await.True(t, "the limits are in force", func() bool { return r.limit() == 1 })
	_, port, err := net.SplitHostPort(r.edges.grpcAddr())
	if err != nil {
		t.Fatal(err)
	}
	cc, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: own.CA, MinVersion: tls.VersionTLS12})))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	q := &rlsv3.RateLimitRequest{Domain: "edge", Descriptors: []*envoyratelimit.RateLimitDescriptor{
		{Entries: []*envoyratelimit.RateLimitDescriptor_Entry{{Key: "user", Value: "a"}}},
	}}
	for _, want := range []rlsv3.RateLimitResponse_Code{rlsv3.RateLimitResponse_OK, rlsv3.RateLimitResponse_OVER_LIMIT} {
		got, err := rlsv3.NewRateLimitServiceClient(cc).ShouldRateLimit(t.Context(), q)
		if err != nil || got.GetOverallCode() != want {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
	text := scrape(t, "http://"+addrOf(r.edges.probeLis)+"/metrics")
	for _, want := range []string{
		`ratelimit_service_rate_limit_total_hits{domain="edge",key1="user",key2=""} 2`,
		`ratelimit_service_rate_limit_within_limit{domain="edge",key1="user",key2=""} 1`,
		`ratelimit_service_rate_limit_over_limit{domain="edge",key1="user",key2=""} 1`,
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 2`,
		`ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 2`,
		"ratelimit_service_config_load_success 2", // of none at first
		"rld_xds_connected 1",
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("metrics lack %s:\n%s", want, text)
		}
	}
}

// scrape returns the metrics at an address.
func scrape(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, answer.Status, err)
	}
	return string(text)
}
