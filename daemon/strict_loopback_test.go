package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/control"
	"github.com/georld/rld/internal/await"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

const strictLimits = `
domain: edge
descriptors:
  - key: login
    rate_limit: {unit: minute, requests_per_unit: 5, consistency: strict}
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 1000}
`

// startRegion starts daemons of one region on loopback, each with a folder of
// its own, and ends them with the test.
func startRegion(t *testing.T, limits string, names ...string) []*running {
	t.Helper()
	return startRegionWith(t, limits, func(*config.Config) {}, names...)
}

// startRegionWith is startRegion with changed settings.
func startRegionWith(t *testing.T, limits string, change func(*config.Config), names ...string) []*running {
	t.Helper()
	var all []*running
	var seeds []string
	for _, name := range names {
		c := testConfig(t, limits)
		c.Region, c.Name = "us", name
		c.Peer.Addr, c.Swim.Addr, c.Swim.Seeds = "127.0.0.1:0", "127.0.0.1:0", seeds
		c.State.Dir, c.Strict.Replicas, c.Cluster.Founders = t.TempDir(), names, names[:1]
		c.Strict.ForwardTimeout = 5 * time.Second // the most: the machine may be busy
		change(&c)
		r := &running{done: make(chan error, 1), log: &lockedBuffer{}}
		r.daemon = &daemon{Options: Options{
			Config: c, Log: slog.New(slog.NewTextHandler(r.log, nil)), Out: io.Discard, Version: "test",
			Secret: []byte("the secret of a region under test"),
		}}
		if err := r.build(); err != nil {
			t.Fatal(err)
		}
		e, err := r.listen()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		r.edges, r.stop = e, cancel
		go func() { r.done <- r.serve(ctx, e) }()
		t.Cleanup(func() {
			cancel()
			await.Value(t, "the end of "+name, r.done)
			r.closeState()
		})
		await.True(t, name+" is ready", func() bool { return r.ready() == nil })
		seeds = append(seeds, r.cluster.swim.Addr())
		all = append(all, r)
	}
	await.True(t, "all know each other", func() bool {
		met := 0
		for _, p := range all[0].control.State().Status.Peers {
			if p.Age >= 0 {
				met++
			}
		}
		return met == len(names)-1
	})
	all[0].control.Do(func(n *control.Node) {
		if err := n.Init(firstRegions(&all[0].Config), true); err != nil {
			t.Error(err)
		}
	})
	await.True(t, "all know each other and vote", func() bool {
		for _, r := range all {
			if len(r.cluster.all()) != len(names) || !r.strict.acceptor.status().Voting || len(r.engine.Links(r.engine.Now())) != len(names)-1 {
				return false
			}
		}
		return true
	})
	return all
}

// TestStrictRegion asks three real daemons over all of their edges: five logins
// pass in a minute, and the metrics count them. Without a majority calls fail
// closed, and HTTP answers 503.
func TestStrictRegion(t *testing.T) {
	all := startRegion(t, strictLimits, "us-0", "us-1", "us-2")
	for n := 0; ; n++ {
		minute := time.Now().Unix() / 60
		passed := logins(t, all, fmt.Sprint("bob", n))
		if time.Now().Unix()/60 != minute && n < 3 {
			continue // some are of the next minute
		}
		if passed < 5 && n < 3 {
			continue // a call that was held up left its rights in a lease
		}
		if passed != 5 {
			t.Errorf("%d logins passed, want 5", passed)
		}
		break
	}
	for i, r := range all {
		_, metrics := fetch(t, "http://"+r.edges.adminAddr()+"/metrics")
		for _, line := range []string{"rld_strict_layout 1\n", "rld_strict_voting 1\n", `rld_circuit_breaker_state{owner="us-0",region="us"} 0`} {
			if !strings.Contains(metrics, line) {
				t.Errorf("daemon %d does not export %q", i, line)
			}
		}
	}
	for _, r := range all[1:] {
		if err := r.wait(t); err != nil {
			t.Error(err)
		}
	}
	await.True(t, "calls fail closed", func() bool {
		status, body := fetch(t, "http://"+all[0].edges.httpAddr()+"/v1/check?domain=edge&login=eve")
		return status == http.StatusServiceUnavailable && strings.Contains(body, `"degraded_reason":"owner_unreachable"`) &&
			strings.Contains(body, `"allowed":false`)
	})
	if status, _ := fetch(t, "http://"+all[0].edges.httpAddr()+"/v1/check?domain=edge&user=eve"); status != http.StatusOK {
		t.Errorf("a limit without an owner answers %d", status)
	}
}

// logins sends twelve logins of a user, to all daemons over two of their edges,
// and returns how many pass.
func logins(t *testing.T, all []*running, user string) (passed int) {
	t.Helper()
	for i := range 12 {
		r := all[i%len(all)]
		if i%2 == 0 {
			if status, _ := fetch(t, "http://"+r.edges.httpAddr()+"/v1/check?domain=edge&login="+user); status == http.StatusOK {
				passed++
			}
			continue
		}
		answer, err := rldv1.NewRateLimiterClient(dial(t, r.edges.grpcAddr())).Check(t.Context(), login(user))
		if err != nil {
			t.Fatal(err)
		}
		if answer.Code == rldv1.Code_ALLOWED {
			passed++
		}
	}
	return passed
}

func login(user string) *rldv1.CheckRequest {
	return &rldv1.CheckRequest{Domain: "edge", Descriptors: []*rldv1.Descriptor{{
		Entries: []*rldv1.Entry{{Key: "login", Value: user}},
	}}}
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestStrictStream asks many questions in frames of one stream: all are
// answered, those that wait for an owner too. What a busy machine answers too
// late, or with a clock that seems to be off, is asked again.
func TestStrictStream(t *testing.T) {
	all := startRegion(t, strictLimits, "us-0", "us-1", "us-2")
	client := rldv1.NewRateLimiterClient(dial(t, all[1].edges.grpcAddr()))
	var left []uint64
	for id := range uint64(500) {
		left = append(left, id+1)
	}
	n := 0
	await.True(t, "all questions are answered and none is degraded", func() bool {
		n++
		left = askStream(t, client, fmt.Sprint("user", n), left)
		return len(left) == 0
	})
}

// askStream asks questions of these numbers, fifty in a frame, and returns
// those with degraded answers. Every second one is of a strict limit.
func askStream(t *testing.T, client rldv1.RateLimiterClient, user string, ids []uint64) (degraded []uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream, err := client.CheckStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for some := range slices.Chunk(ids, 50) {
			f := &rldv1.CheckFrame{}
			for _, id := range some {
				q := login(fmt.Sprint(user, "-", id))
				if id%2 == 1 {
					q.Descriptors[0].Entries[0].Key = "user"
				}
				q.Id = id
				f.Checks = append(f.Checks, q)
			}
			if stream.Send(f) != nil {
				return
			}
		}
		_ = stream.CloseSend() // Recv returns the error
	}()
	seen := map[uint64]bool{}
	for {
		f, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range f.Answers {
			switch {
			case a.Statuses[0].Degraded:
				degraded = append(degraded, a.Id)
			case a.Code != rldv1.Code_ALLOWED:
				t.Errorf("answered %v", a)
			}
			seen[a.Id] = true
		}
	}
	if len(seen) != len(ids) {
		t.Fatalf("%d of %d questions were answered", len(seen), len(ids))
	}
	return degraded
}

// TestStrictBadJournal opens a journal that is not the daemon's.
func TestStrictBadJournal(t *testing.T) {
	c := testConfig(t, strictLimits)
	c.Region, c.Name = "us", "us-0"
	c.Peer.Addr, c.Swim.Addr = "127.0.0.1:0", "127.0.0.1:0"
	c.State.Dir, c.Strict.Replicas = t.TempDir(), []string{"us-0"}
	start := func(secret string) (*daemon, string, error) {
		var log bytes.Buffer
		d := &daemon{Options: Options{Config: c, Log: slog.New(slog.NewTextHandler(&log, nil)), Out: io.Discard, Secret: []byte(secret)}}
		err := d.build()
		d.closeState()
		return d, log.String(), err
	}
	if _, _, err := start("one"); err != nil {
		t.Fatal(err)
	}
	// Another cluster's files are not this daemon's: it does not start.
	if _, _, err := start("another"); err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("a journal of another cluster: %v", err)
	}
}
