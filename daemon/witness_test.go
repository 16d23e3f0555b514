package daemon

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/config"
	"github.com/georld/rld/control"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/admin/api"
)

// A witness is ready to vote and shows its pages. Its edges refuse calls and
// name the reason, and it is not serving for those who ask for that.
func TestWitnessServesNoCalls(t *testing.T) {
	c := testConfig(t, `
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 10, consistency: strict}
  - key: tenant
    rate_limit: {unit: minute, requests_per_unit: 10, overage_budget: 1%}
`)
	c.Region, c.Name, c.Peer.Addr, c.Swim.Addr = "w", "w-0", "127.0.0.1:0", "127.0.0.1:0"
	c.Regions, c.State.Dir, c.Control.Voter = []config.Region{{Name: "us"}, {Name: "eu"}}, t.TempDir(), config.VoterOnly
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	r := startDaemon(t, c)
	conn := dial(t, r.edges.grpcAddr())
	_, err := rldv1.NewRateLimiterClient(conn).Check(t.Context(), question("a"))
	_, rls := ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: "edge"})
	for _, err := range []error{err, rls} {
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), server.ErrWitness.Error()) {
			t.Errorf("a call: %v, want that it only votes", err)
		}
	}
	if got := get(t, r.edges.httpAddr(), "/v1/check?domain=edge&d=user:a"); !strings.Contains(got, "control.voter: only") {
		t.Errorf("a call over HTTP: %s", got)
	}
	health, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || health.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health %v, %v: want not serving", health, err)
	}
	resp, err := http.Get("http://" + r.edges.httpAddr() + "/healthcheck")
	if err != nil || resp.StatusCode == http.StatusOK {
		t.Errorf("/healthcheck: %v, %v: want a failure", resp, err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if got := get(t, r.edges.adminAddr(), "/readyz?verbose"); !strings.HasPrefix(got, "ready\n") || !strings.Contains(got, "it answers no calls") {
		t.Errorf("/readyz: %s, want ready to vote", got)
	}
	for _, path := range []string{"/v1/explain?domain=edge&d=user:a", "/v1/explain?domain=edge&d=tenant:a", "/v1/status", "/metrics"} {
		get(t, r.edges.adminAddr(), path)
	}
	if got := get(t, r.edges.adminAddr(), "/v1/budget"); !strings.Contains(got, `"voter_only": true`) {
		t.Errorf("/v1/budget: %s, want that it only votes", got)
	}
	if got := get(t, r.edges.adminAddr(), "/v1/budget?rule=tenant"); !strings.Contains(got, "control.voter: only") {
		t.Errorf("/v1/budget of a rule: %s, want that it only votes", got)
	}
	if r.agent != nil || r.strict != nil || r.charged() > 0 {
		t.Errorf("an agent %v, strict keys %v, %d hits charged: want none", r.agent, r.strict, r.charged())
	}
	second := testConfig(t, oneRule)
	second.Region, second.Name, second.Regions, second.State, second.Control = c.Region, "w-1", c.Regions, c.State, c.Control
	if err := Run(context.Background(), Options{Config: second}); err == nil || !strings.Contains(err.Error(), "state.dir") {
		t.Errorf("another witness in the folder: %v, want it refused", err)
	}
}

// Two regions and a witness: the witness has a vote, and others exchange no
// counts with it.
func TestWitnessVotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 2, []string{"us-0", "eu-0", "w-0"}, "us", "eu", "w")
		w.witness = "w"
		for _, r := range w.residents {
			r.start()
		}
		w.within(20*time.Second, "all know each other", func() bool {
			return !slices.ContainsFunc(w.residents, func(r *resident) bool { return !w.met(r.name, 5) })
		})
		if a, err := w.report("us-0", "us", "eu", "w").InitCluster(api.InitRequest{}); err != nil || len(a.Missing) > 0 {
			t.Fatalf("%+v, %v: want the cluster to begin", a, err)
		}
		w.within(30*time.Second, "all have the record", func() bool { return w.equal(1) })
		if all := w.state("w-0").Record.Regions; len(all) != 2 || all[0].Weight != control.Whole/2 {
			t.Errorf("regions %+v: want two with equal weights", all)
		}
		w.within(10*time.Second, "the witness has no part in counts", func() bool {
			return len(w.find("us-0").engine.Links(w.find("us-0").engine.Now())) == 3 &&
				len(w.find("w-0").engine.Links(w.find("w-0").engine.Now())) == 0
		})
		if !w.find("us-0").hits(1, "visitor", "a") {
			t.Error("a hit was denied")
		}
		w.within(10*time.Second, "the hit is known", func() bool {
			return w.find("eu-1").remaining("visitor", "a") == w.limit-1
		})
		if got := w.find("w-0").remaining("visitor", "a"); got != w.limit {
			t.Errorf("the witness knows of %d hits: want none", w.limit-got)
		}
		w.within(2*time.Minute, "five voters", func() bool { return w.state("us-0").Record.Voting() == 5 })
		voters := map[string]int{}
		for _, v := range w.report("us-1", "us", "eu", "w").ClusterPage().Cluster.Voters {
			if voters[v.Region]++; v.VoterOnly != (v.Region == "w") {
				t.Errorf("voter %+v: want that of region w to be voter only", v)
			}
		}
		if voters["us"] > 2 || voters["eu"] > 2 {
			t.Errorf("voters %v: want no region with a majority", voters)
		}
	})
}
