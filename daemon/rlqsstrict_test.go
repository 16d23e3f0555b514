package daemon

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/grpchost"
	"github.com/georld/rld/server/rlqs"
)

// serveRLQS serves RLQS of an engine in memory, and opens a stream.
func serveRLQS(t *testing.T, e *Engine) *rlqsStream {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	host := grpchost.New(grpchost.DefaultOptions(), rlqs.New(e, server.DefaultSettings(), nil))
	done := make(chan error, 1)
	go func() { done <- host.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///rld", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	s, err := quotav3.NewRateLimitQuotaServiceClient(conn).StreamRateLimitQuotas(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		host.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &rlqsStream{t, s}
}

// TestStrictRLQS assigns hits of a strict limit at three daemons of a region:
// they are charged at its owner, so what all clients get, and the calls that
// pass beside them, are the limit.
func TestStrictRLQS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: perMinute(100, rules.Deny)}), "us")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		var assigned atomic.Int64
		var streams []*rlqsStream
		for _, r := range w.residents {
			s := serveRLQS(t, w.engines.of(r.name))
			streams = append(streams, s)
			go func() {
				for m, err := s.Recv(); err == nil; m, err = s.Recv() {
					for _, a := range m.BucketAction {
						n := tokensOf(a)
						if n < 0 {
							t.Errorf("everything is allowed: %v", a)
						}
						assigned.Add(int64(n))
					}
				}
			}()
		}
		for range 4 {
			for _, s := range streams {
				m := &quotav3.RateLimitQuotaUsageReports{Domain: "edge", BucketQuotaUsages: []*rlqsUsage{rlqsReport(0, 1_000, "login", "u")}}
				if err := s.Send(m); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * time.Second)
		}
		passed := 0
		for range 100 {
			for _, r := range w.residents {
				if r.check(descriptor(1, "login", "u")).Decision.Allowed {
					passed++
				}
			}
		}
		if n := int(assigned.Load()); n < 50 || n+passed != 100 {
			t.Errorf("%d hits are assigned and %d pass, want 100 together and half of them assigned", n, passed)
		}
	})
}
