//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // so that clients follow a daemon's health

	"github.com/georld/rld/internal/admitted"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// client asks one daemon over gRPC. It follows the daemon's health, as a
// gateway does: while that is not serving, calls fail at once.
type client struct {
	conn *grpc.ClientConn
	stub rldv1.RateLimiterClient
}

const followHealth = `{"healthCheckConfig": {"serviceName": ""}, "loadBalancingConfig": [{"round_robin": {}}]}`

func newClient(t testing.TB, n network, addr string) *client {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithDefaultServiceConfig(followHealth),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return n.dial(ctx, addr) }),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 300 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		t.Fatal(err)
	}
	return &client{conn, rldv1.NewRateLimiterClient(conn)}
}

func (c *client) close() { c.conn.Close() }

// question is one call of one descriptor; no hits is a peek.
type question struct {
	rule, value string
	hits        int
}

// check asks the daemon for at most a time.
func (c *client) check(atMost time.Duration, q question) (*rldv1.Status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	hits := uint64(q.hits)
	answer, err := c.stub.Check(ctx, &rldv1.CheckRequest{
		Domain: domain,
		Descriptors: []*rldv1.Descriptor{{
			Entries: []*rldv1.Entry{{Key: q.rule, Value: q.value}},
			Hits:    &hits,
		}},
	})
	if err != nil {
		return nil, err
	}
	if len(answer.Statuses) != 1 || answer.Statuses[0].Limit == nil {
		return nil, fmt.Errorf("answered %v, want one status with a limit", answer)
	}
	return answer.Statuses[0], nil
}

// lengths is how long the windows of each rule are.
var lengths = map[string]time.Duration{
	day: 24 * time.Hour, window: 5 * time.Second, kept: 24 * time.Hour,
	brief: 10 * time.Second, bounded: 10 * time.Second, strict: 2 * time.Second, shared: 3 * time.Second,
	open: 24 * time.Hour, allowed: 24 * time.Hour, once: 24 * time.Hour,
}

// windowOf returns the window that an answer is about: the daemon states its
// rest from some time between question and answer on.
func windowOf(q question, s *rldv1.Status, sent, answered time.Time) admitted.Window {
	return admitted.WindowOf(q.rule, q.value, lengths[q.rule], sent.Add(answered.Sub(sent)/2), s.ResetAfter.AsDuration())
}
