package xds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/georld/rld/config"
	"github.com/georld/rld/disk"
	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/limits/xds"
)

// management is go-control-plane's server on loopback.
type management struct {
	t     *testing.T
	cache cache.SnapshotCache
	addr  string
	grpc  *grpc.Server

	mu      sync.Mutex
	nacks   []string
	acks    []string // versions
	headers metadata.MD
}

// callbacks notes the requests.
func (m *management) callbacks() server.Callbacks {
	return server.CallbackFuncs{
		StreamOpenFunc: func(ctx context.Context, _ int64, _ string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.headers, _ = metadata.FromIncomingContext(ctx)
			return nil
		},
		StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			switch e := r.GetErrorDetail(); {
			case e != nil:
				m.nacks = append(m.nacks, e.GetMessage())
			case r.GetResponseNonce() != "":
				m.acks = append(m.acks, r.GetVersionInfo())
			}
			return nil
		},
	}
}

func (m *management) acked() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.acks, " ")
}

func (m *management) nacked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.nacks...)
}

// newManagement returns a server that is not started.
func newManagement(t *testing.T) *management {
	return &management{t: t, cache: cache.NewSnapshotCache(true, cache.IDHash{}, nil), addr: "127.0.0.1:0"}
}

// start serves at the address of the last time.
func (m *management) start(o ...grpc.ServerOption) {
	m.t.Helper()
	lis, err := net.Listen("tcp", m.addr)
	if err != nil {
		m.t.Fatal(err)
	}
	m.addr = lis.Addr().String()
	m.grpc = grpc.NewServer(o...)
	ctx, cancel := context.WithCancel(context.Background())
	discovery.RegisterAggregatedDiscoveryServiceServer(m.grpc, server.NewServer(ctx, m.cache, m.callbacks()))
	var serving sync.WaitGroup
	running := m.grpc
	serving.Go(func() { _ = running.Serve(lis) })
	m.t.Cleanup(func() {
		running.Stop()
		cancel()
		serving.Wait()
	})
}

// set makes the resources the limits of the node default.
func (m *management) set(version string, all ...*ratelimit.RateLimitConfig) {
	m.t.Helper()
	var resources []types.Resource
	for _, c := range all {
		resources = append(resources, c)
	}
	s, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: resources})
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.cache.SetSnapshot(context.Background(), "default", s); err != nil {
		m.t.Fatal(err)
	}
}

// perMinute returns a resource with a limit of each key.
func perMinute(domain string, requests uint32, keys ...string) *ratelimit.RateLimitConfig {
	c := &ratelimit.RateLimitConfig{Name: domain, Domain: domain}
	for _, k := range keys {
		c.Descriptors = append(c.Descriptors, &ratelimit.RateLimitDescriptor{
			Key: k, RateLimit: &ratelimit.RateLimitPolicy{Unit: ratelimit.RateLimitUnit_MINUTE, RequestsPerUnit: requests},
		})
	}
	return c
}

// running is a client whose limits are compiled.
type running struct {
	*Client
	t *testing.T

	mu    sync.Mutex
	rules string // in force
	fault string // of the latest response
	log   lines
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (r *running) apply(s *xds.Set) error {
	set, found := limits.Parse(s.Files, limits.Options{})
	s.Explain(found)
	if err := found.Err(); err != nil {
		return err
	}
	var all []string
	for _, rule := range set.Rules() {
		all = append(all, fmt.Sprintf("%s/%s=%d", rule.Domain, rule.Path, rule.Limit.Requests))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = strings.Join(all, " ")
	return nil
}

func (r *running) inForceNow() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rules
}

func (r *running) refused(fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

func (r *running) faultNow() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

// wait waits until rules are in force.
func (r *running) wait(rules string) {
	r.t.Helper()
	await.True(r.t, "the rules "+rules, func() bool { return r.inForceNow() == rules })
}

// settingsOf returns settings for a server.
func settingsOf(addr string) config.XDS {
	s := config.Default().Limits.XDS
	s.Server, s.BackoffMin, s.BackoffMax = addr, minBackoff, 10*minBackoff
	return s
}

// follow runs a client until the test ends.
func follow(t *testing.T, s config.XDS, folder disk.Folder, d Dialer) (r *running, stop func()) {
	t.Helper()
	r = &running{t: t}
	r.Client = New(Options{Settings: s, Apply: r.apply, Refused: r.refused, Folder: folder, Log: slog.New(slog.NewTextHandler(&r.log, nil)), Dial: d})
	r.Restore()
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { r.Run(ctx) })
	stop = func() {
		cancel()
		run.Wait()
	}
	t.Cleanup(stop)
	return r, stop
}

var errTest = errors.New("the test ends the stream")
