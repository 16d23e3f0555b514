package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/georld/rld/internal/load"
)

// The limits of an xDS server: a rule for each of so many values, in a resource
// for each domain.
const (
	xdsRules      = 10_000
	xdsRulesQuick = 200
	xdsDomains    = 10
	// xdsLowered is the limit of a rule that was changed, and xdsHits are
	// charged to its key before.
	xdsLowered = 10
	xdsHits    = 100
)

// management is an xDS server with the snapshot cache of go-control-plane.
type management struct {
	cache   cache.SnapshotCache
	addr    string
	rules   int
	version int
	lowered int // how many rules have the limit xdsLowered: the first ones
}

// startManagement starts a server that stops with a cleanup.
func (b *bench) startManagement(stopping *cleanup) *management {
	lis := must(net.Listen("tcp", "127.0.0.1:0"))
	m := &management{
		cache: cache.NewSnapshotCache(true, cache.IDHash{}, nil), addr: lis.Addr().String(), rules: xdsRules,
	}
	if b.quick {
		m.rules = xdsRulesQuick
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, m.cache, nil))
	served := make(chan error, 1)
	go func() { served <- g.Serve(lis) }()
	stopping.add(func() error {
		cancel()
		g.Stop()
		return <-served
	})
	return m
}

// xdsDomain returns the domain of a rule, and xdsValue the value it is for.
func xdsDomain(rule int) string { return fmt.Sprintf("xds-%d", rule%xdsDomains) }
func xdsValue(rule int) string  { return fmt.Sprintf("route-%06d", rule) }

// set makes n rules the snapshot of the daemons. It returns the instant before.
func (m *management) set(n int) time.Time {
	all := make([]types.Resource, xdsDomains)
	for d := range all {
		c := &config.RateLimitConfig{Name: xdsDomain(d), Domain: xdsDomain(d)}
		for rule := d; rule < n; rule += xdsDomains {
			limit := uint32(benchRequests)
			if rule < m.lowered {
				limit = xdsLowered
			}
			c.Descriptors = append(c.Descriptors, &config.RateLimitDescriptor{
				Key: benchKey, Value: xdsValue(rule),
				RateLimit: &config.RateLimitPolicy{Unit: config.RateLimitUnit_HOUR, RequestsPerUnit: limit},
			})
		}
		all[d] = c
	}
	m.version++
	s := must(cache.NewSnapshot(strconv.Itoa(m.version), map[resource.Type][]types.Resource{resource.RateLimitConfigType: all}))
	start := time.Now()
	check(m.cache.SetSnapshot(context.Background(), "default", s))
	return start
}

// folder writes the rules as limits files into a folder and returns it.
func (m *management) folder(b *bench) string {
	dir := filepath.Join(b.dir, "xds")
	check(os.MkdirAll(dir, 0o700))
	for d := range xdsDomains {
		var s strings.Builder
		fmt.Fprintf(&s, "domain: %s\ndescriptors:\n", xdsDomain(d))
		for rule := d; rule < m.rules; rule += xdsDomains {
			fmt.Fprintf(&s, "  - {key: %s, value: %s, rate_limit: {unit: hour, requests_per_unit: %d}}\n",
				benchKey, xdsValue(rule), uint32(benchRequests))
		}
		check(os.WriteFile(filepath.Join(dir, xdsDomain(d)+".yaml"), []byte(s.String()), 0o600))
	}
	return dir
}

// settings returns the settings of a daemon that follows the server.
func (m *management) settings() []string {
	return []string{"--limits-xds-server", m.addr, "--limits-xds-start-without-limits"}
}

// follower is a daemon that follows a server, and a client of it.
type follower struct {
	*served
	stub ratelimitv3.RateLimitServiceClient
}

// newFollower returns a daemon with a client that a cleanup closes.
func newFollower(s *served, stopping *cleanup) *follower {
	conn := must(grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy()))
	stopping.add(conn.Close)
	return &follower{s, ratelimitv3.NewRateLimitServiceClient(conn)}
}

// admits charges hits to the key of a rule and reports whether they fit.
func (f *follower) admits(ctx context.Context, rule int, hits uint32) bool {
	answer, err := f.stub.ShouldRateLimit(ctx, &ratelimitv3.RateLimitRequest{
		Domain: xdsDomain(rule), HitsAddend: hits,
		Descriptors: []*commonv3.RateLimitDescriptor{{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: benchKey, Value: xdsValue(rule)}},
		}},
	})
	if err != nil {
		check(f.failed(err))
	}
	return answer.OverallCode == ratelimitv3.RateLimitResponse_OK
}

// untilDenied makes calls until one is denied, and returns when.
func (f *follower) untilDenied(ctx context.Context, rule int, hits uint32) time.Time {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for f.admits(ctx, rule, hits) {
		check(sleep(ctx, readyPoll/2))
	}
	return time.Now()
}

// hash returns the hash of the active set, as its metric.
func (f *follower) hash(ctx context.Context) string {
	for name := range scrape(ctx, f.served)[0] {
		if strings.HasPrefix(name, "rld_rules_info{") {
			return name
		}
	}
	check(f.failed(fmt.Errorf("no metric rld_rules_info")))
	return ""
}

// measureXDSLoad measures how long a daemon takes to put all rules of a server
// in force, from the snapshot on: until the last one denies. It is measured
// beside a command that reads the same rules from files.
func measureXDSLoad(ctx context.Context, b *bench) outcome {
	var stopping cleanup
	defer finish(stopping.stop)
	m := b.startManagement(&stopping)
	s := b.serve(ctx, "", m.settings()...)
	stopping.add(s.stop)
	f := newFollower(s, &stopping)
	dir, path := m.folder(b), b.rld(ctx)
	last := m.rules - 1
	readings := alternate(ctx, b.rounds(7),
		func() float64 {
			m.lowered = 0
			m.set(0)
			for scrape(ctx, s)[0]["rld_config_rules"] != 0 {
				check(sleep(ctx, readyPoll))
			}
			m.lowered = m.rules
			start := m.set(m.rules)
			return float64(f.untilDenied(ctx, last, xdsHits).Sub(start))
		},
		func() float64 {
			start := time.Now()
			if out, err := exec.CommandContext(ctx, path, "limits", "check", dir).CombinedOutput(); err != nil {
				check(fmt.Errorf("rld limits check: %w: %s", err, out))
			}
			return float64(time.Since(start))
		},
	)
	return compare(nanoseconds, load.Median, readings, "rld limits check of the same rules in files")
}

// measureXDSChange measures how long a lower limit takes to act in a cluster of
// three with a control log, from the snapshot on: until the last daemon denies.
// Beside it is how long it takes until the new set is active in all three: the
// control log makes it so when all have reported it.
func measureXDSChange(ctx context.Context, b *bench) outcome {
	var r region
	defer finish(r.stop)
	m := b.startManagement(&r.cleanup)
	disk := r.disk()
	var all []*follower
	names := daemonName(0) + "," + daemonName(1) + "," + daemonName(2)
	more := append(m.settings(), "--strict-replicas", names, "--cluster-founders", daemonName(0))
	for i := range daemonsOfRegion {
		s := b.serveStrict(ctx, &r, "", neighborRegions[0], daemonName(i), disk, more...)
		r.daemons = append(r.daemons, s)
		all = append(all, newFollower(s, &r.cleanup))
		if i == 0 {
			more = append(more, "--swim-seeds", s.swim)
		}
	}
	b.begin(ctx, r.daemons[0])
	m.set(m.rules)
	for _, f := range all {
		for f.membersReady(ctx) != daemonsOfRegion || scrape(ctx, f.served)[0]["rld_config_rules"] < float64(m.rules) {
			check(sleep(ctx, 10*readyPoll))
		}
	}
	readings := make([][]float64, 2)
	for range b.rounds(7) {
		rule := m.lowered
		before := all[0].hash(ctx)
		for _, f := range all {
			if !f.admits(ctx, rule, xdsHits) {
				check(f.failed(fmt.Errorf("rule %d denies before it was lowered", rule)))
			}
		}
		m.lowered++
		start := m.set(m.rules)
		denied, agreed := m.lowering(ctx, all, rule, before)
		readings[0] = append(readings[0], float64(denied.Sub(start)))
		readings[1] = append(readings[1], float64(agreed.Sub(start)))
		check(ctx.Err())
	}
	return compare(nanoseconds, load.Median, readings, "until the new set is active in all three")
}

// lowering returns when the last of some daemons denies by a rule that was
// lowered, and when a set is active in all that is another one than before.
func (m *management) lowering(ctx context.Context, all []*follower, rule int, before string) (denied, agreed time.Time) {
	var mu sync.Mutex
	var waiting sync.WaitGroup
	var failed error
	for _, f := range all {
		waiting.Go(func() {
			err := catch(func() {
				at := f.untilDenied(ctx, rule, 1)
				mu.Lock()
				defer mu.Unlock()
				if at.After(denied) {
					denied = at
				}
			})
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = err
			}
		})
	}
	waiting.Wait()
	check(failed)
	for same := false; !same; {
		first := all[0].hash(ctx)
		same = first != before
		for _, f := range all[1:] {
			same = same && f.hash(ctx) == first
		}
		agreed = time.Now()
	}
	return denied, agreed
}
