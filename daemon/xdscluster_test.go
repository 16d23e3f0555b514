package daemon

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/config"
	"github.com/georld/rld/control"
	"github.com/georld/rld/limits/xds"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/telemetry"
)

// receiver returns a function that hands a daemon the response of its own xDS
// server, and fails unless the daemon accepts it.
func (w *limitsWorld) receiver(r *resident) func(requests uint32) {
	w.t.Helper()
	metrics, err := telemetry.New(prometheus.NewRegistry(), telemetry.Options{Engine: r.engine})
	if err != nil {
		w.t.Fatal(err)
	}
	c := config.Default()
	c.Region, c.Name, c.Limits.XDS.Server = r.region, r.name, "xds:18000"
	source := &limitsSource{cfg: &c, log: slog.New(slog.DiscardHandler), metrics: metrics, active: w.active[r.name]}
	stream := xds.New(xds.Config{
		NodeID: r.name, BackoffMin: time.Second, BackoffMax: time.Second, Random: rand.New(rand.NewPCG(1, 1)), Apply: source.applySet,
	})
	server := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	return func(requests uint32) {
		w.t.Helper()
		c := &ratelimit.RateLimitConfig{Name: "edge", Domain: "edge", Descriptors: []*ratelimit.RateLimitDescriptor{
			{Key: "user", RateLimit: &ratelimit.RateLimitPolicy{Unit: ratelimit.RateLimitUnit_MINUTE, RequestsPerUnit: requests}},
		}}
		snapshot, err := cache.NewSnapshot("of "+r.name+time.Now().String(), map[resource.Type][]types.Resource{resource.RateLimitConfigType: {c}})
		if err != nil {
			w.t.Fatal(err)
		}
		if err := server.SetSnapshot(w.t.Context(), r.name, snapshot); err != nil {
			w.t.Fatal(err)
		}
		fetched, err := server.Fetch(w.t.Context(), stream.Begin())
		if err != nil {
			w.t.Fatal(err)
		}
		response, err := fetched.GetDiscoveryResponse()
		if err != nil {
			w.t.Fatal(err)
		}
		response.Nonce = "n"
		reply := stream.Receive(response)
		if reply.Fault != "" {
			w.t.Fatal(reply.Fault)
		}
	}
}

// TestXDSAgreement: three daemons that receive the same set at different times,
// as other versions, use it when all have it. A lower limit acts where it
// arrives, and those that have a set which is not in force show it.
func TestXDSAgreement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 3, []string{"us-0"}, "us")
		w.begin("us")
		receive := make([]func(uint32), len(w.residents))
		for i, r := range w.residents {
			receive[i] = w.receiver(r)
			receive[i](100)
		}
		w.within(time.Second, "the first sets act", func() bool { return w.have(100) })
		if _, err := w.command("us-0", api.AdoptRules, api.LimitsRequest{}); err != nil {
			t.Fatal(err)
		}
		w.within(65*time.Second, "the set is in the log", func() bool {
			l := w.state("us-2").Record.Limits
			return len(l.Applied) == 1 && l.Pending() == control.Version{} && w.have(100)
		})
		overruled := func() (all []bool) {
			for _, r := range w.alive() {
				d := w.active[r.name].State().Domains
				all = append(all, len(d) == 1 && d[0].Overruled)
			}
			return all
		}
		shows := func(requests []int, differ []bool) {
			t.Helper()
			w.within(time.Second, "the limits and the status of each", func() bool {
				return slices.Equal(w.requests(), requests) && slices.Equal(overruled(), differ)
			})
			time.Sleep(30 * time.Second)
			if n := len(w.state("us-0").Record.Limits.Applied); n != 1 || !slices.Equal(w.requests(), requests) {
				t.Fatalf("%d versions and %v requests while sets differ", n, w.requests())
			}
		}
		receive[0](50)
		shows([]int{50, 100, 100}, []bool{true, false, false})
		receive[1](50)
		shows([]int{50, 50, 100}, []bool{true, true, false})
		receive[2](50)
		agreed := func(versions, requests int) func() bool {
			return func() bool {
				l := w.state("us-0").Record.Limits
				return len(l.Applied) == versions && l.Pending() == control.Version{} && w.have(requests)
			}
		}
		w.within(15*time.Second, "the lower set is in the log", agreed(2, 50))

		// A higher one waits for the last daemon.
		receive[2](200)
		receive[0](200)
		time.Sleep(2 * time.Minute)
		if !w.have(50) || !slices.Equal(overruled(), []bool{true, false, true}) {
			t.Fatalf("%v requests, overruled %v, while one daemon has 50", w.requests(), overruled())
		}
		receive[1](200)
		w.within(90*time.Second, "the higher set is in force", agreed(3, 200))

		// A silent daemon does not keep the others from a set.
		w.kill(w.residents[2])
		receive[0](150)
		receive[1](150)
		w.within(90*time.Second, "the set of two is in force", agreed(4, 150))
	})
}
