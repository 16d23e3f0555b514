package files

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	luafilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

const patience = 60 * time.Second

// daemon is an rld that runs.
type daemon struct {
	grpc service.RateLimitServiceClient
	http string // its address
}

// startRLD starts rld with the files of an example.
func startRLD(t *testing.T, folder string) *daemon {
	t.Helper()
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	from, err := filepath.Abs(filepath.Join(root, "examples", "gateways", folder))
	if err != nil {
		t.Fatal(err)
	}
	addr, web := freeAddress(t), freeAddress(t)
	cmd := exec.Command(binary, "serve", "--config", filepath.Join(from, "rld.yaml"), "--limits", filepath.Join(from, "limits.yaml"),
		"--grpc-addr", addr, "--http-addr", web, "--admin-addr", freeAddress(t), "--admin-uds", filepath.Join(dir, "admin.sock"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		if text, err := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s%v", text, err)
		}
	})
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	d := &daemon{service.NewRateLimitServiceClient(conn), web}
	d.waitFor(t)
	return d
}

// waitFor waits until rld is ready.
func (d *daemon) waitFor(t *testing.T) {
	t.Helper()
	var problem error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		r, err := http.Get("http://" + d.http + "/healthcheck")
		if err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
			err = errors.New(r.Status)
		}
		problem = err
	}
	t.Fatalf("rld is not ready: %v", problem)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	return lis.Addr().String()
}

// envoy asks a real rld what Envoy would ask about the requests that its script
// does not refuse.
type envoy struct {
	*envoyConfig
	rld    service.RateLimitServiceClient
	script *luafilter.Lua
}

// refuses reports whether the script refuses a request.
func (e *envoy) refuses(t *testing.T, r request) bool {
	t.Helper()
	headers := map[string][]string{":path": {r.path}}
	for name, value := range r.header {
		headers[name] = []string{value}
	}
	return refuses(t, loadLua(t, e.script), headers) != ""
}

// ask returns the answer to a question. All of its descriptors must have a
// limit.
func (e *envoy) ask(t *testing.T, q *question) *service.RateLimitResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := q.ValidateAll(); err != nil {
		t.Errorf("%v: %v", q, err)
	}
	a, err := e.rld.ShouldRateLimit(ctx, q, grpc.WaitForReady(true))
	if err != nil {
		t.Errorf("%v: %v", q, err)
		return new(service.RateLimitResponse)
	}
	for i, s := range a.GetStatuses() {
		if s.GetCurrentLimit() == nil {
			t.Errorf("no rule matches %v", q.GetDescriptors()[i])
		}
	}
	if retry := added(a.GetResponseHeadersToAdd())["retry-after"]; (retry == "") != (a.GetOverallCode() == service.RateLimitResponse_OK) {
		t.Errorf("%v: %v", q, a)
	}
	return a
}

// admitted sends a request n times, from several clients at once if its stream
// asks nothing when it is done, and returns how many are admitted.
func (e *envoy) admitted(t *testing.T, n int, r request) int {
	t.Helper()
	if e.refuses(t, r) {
		return 0
	}
	before, done := e.asked(t, r)
	if before == nil {
		t.Fatalf("%s is not limited", r)
	}
	var count, sent atomic.Int64
	var wg sync.WaitGroup
	clients := 16
	if done != nil {
		clients = 1
	}
	for range clients {
		wg.Go(func() {
			for sent.Add(1) <= int64(n) {
				a := e.ask(t, proto.CloneOf(before))
				if a.GetOverallCode() != service.RateLimitResponse_OK {
					continue
				}
				count.Add(1)
				if done != nil {
					e.ask(t, done) // its answer has no effect
				}
			}
		})
	}
	wg.Wait()
	return int(count.Load())
}

// untilTomorrow waits until no window of a day ends in the test.
func untilTomorrow(t *testing.T) {
	t.Helper()
	now := time.Now().UTC()
	if left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now); left < 2*time.Minute {
		t.Logf("waiting %v for the next day", left)
		time.Sleep(left + time.Second)
	}
}

// TestDescriptors sends rld what Envoy sends for the actions of the example:
// each limit admits exactly its hits.
func TestDescriptors(t *testing.T) {
	untilTomorrow(t)
	c := readEnvoy(t, "envoy.yaml")
	e := &envoy{c, startRLD(t, "envoy").grpc, filterOf[*luafilter.Lua](t, c)}
	key := func(k string) map[string]string { return map[string]string{"x-api-key": k} }
	cost := map[string]string{"x-cost": "7"}
	for i, tt := range []struct {
		request
		sent, want int
	}{
		{request{path: "/v1/orders", header: key("k1")}, 10_000, 1000},
		{request{path: "/v1/orders?hits=0", header: key("k1")}, 10, 0},
		{request{path: "/v1", header: key("k2")}, 10, 10},
		{request{path: "/v1/reports/march", header: key("k1")}, 13, 10},
		{request{path: "/v1/reports", header: key("k1&hits=0")}, 13, 10},
		{request{path: "/v1/reports/march?x=;//", header: key("k2")}, 13, 10},
		{request{path: "/v1;x/reports;y/march", header: key("k3")}, 13, 0},
		{request{path: "/v1/reports/march"}, 13, 10},
		{request{path: "/v1/reports/april"}, 3, 0},
		{request{path: "/login", header: key("k1")}, 13, 10},
		{request{path: "/login/"}, 13, 10},
		{request{path: "/login;x"}, 13, 0},
		{request{path: "/v1;x/orders", header: key("k4")}, 13, 0},
		{request{path: "/v1/batch;x", header: key("k4")}, 13, 0},
		{request{path: "/v1/tokens;x", header: key("k4")}, 13, 0},
		{request{path: "/v1/trial;x", header: key("k4")}, 13, 0},
		{request{path: "/other"}, 5100, 5000},
		{request{path: "/v1/batch", header: key("k1")}, 13, 2},
		{request{path: "/v1/batch/x"}, 13, 2},
		// 1 hit of 20, then 7 of the response: 8, 16, 24.
		{request{path: "/v1/tokens", header: key("k1"), response: cost}, 13, 3},
		{request{path: "/v1/tokens", response: cost}, 13, 3},
		{request{path: "/v1/tokens", header: key("k2")}, 30, 20},
		{request{path: "/v1/tokens", header: key("k3"), response: map[string]string{"x-cost": "-7"}}, 30, 20},
		{request{path: "/v1/trial", header: key("k1")}, 13, 3},
		{request{path: "/v1/trial/x"}, 13, 3},
	} {
		tt.address = fmt.Sprintf("192.0.2.%d", i)
		if got := e.admitted(t, tt.sent, tt.request); got != tt.want {
			t.Errorf("%s: %d of %d admitted, want %d", tt.request, got, tt.sent, tt.want)
		}
	}
	count := 0
	for range 13 {
		if e.ask(t, e.connection("192.0.2.1")).GetOverallCode() == service.RateLimitResponse_OK {
			count++
		}
	}
	if count != 10 {
		t.Errorf("%d of 13 connections admitted, want 10", count)
	}
}
