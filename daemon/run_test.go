package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/georld/rld/config"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/internal/await"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/quota"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const oneRule = `
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 4000000000}
`

// running is a daemon on ports of its own.
type running struct {
	*daemon
	edges *edges
	stop  context.CancelFunc
	done  chan error
	log   *lockedBuffer
}

// lockedBuffer collects a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func testConfig(t *testing.T, limits string) config.Config {
	t.Helper()
	c := config.Default()
	c.GRPC.Addr, c.HTTP.Addr, c.Admin.Addr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.Limits.Path = filepath.Join(t.TempDir(), "limits.yaml")
	c.Limits.Poll = 100 * time.Millisecond
	if err := os.WriteFile(c.Limits.Path, []byte(limits), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func startDaemon(t *testing.T, c config.Config) *running {
	t.Helper()
	r := &running{done: make(chan error, 1), log: &lockedBuffer{}}
	r.daemon = &daemon{Options: Options{Config: c, Log: slog.New(slog.NewTextHandler(r.log, nil)), Out: io.Discard, Version: "test"}}
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
		await.Value(t, "the end of the daemon", r.done)
	})
	await.True(t, "the daemon is ready", func() bool { return r.ready() == nil })
	return r
}

// wait stops the daemon and returns what serve returned.
func (r *running) wait(t *testing.T) error {
	t.Helper()
	r.stop()
	err := await.Value(t, "the end of the daemon", r.done)
	r.done <- nil // for the cleanup
	return err
}

func dial(t *testing.T, target string) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

func question(user string) *rldv1.CheckRequest {
	return &rldv1.CheckRequest{Domain: "edge", Descriptors: []*rldv1.Descriptor{{
		Entries: []*rldv1.Entry{{Key: "user", Value: user}},
	}}}
}

func (r *running) charged() uint64 {
	sum := uint64(0)
	r.engine.Tallies(func(_, _ string, t quota.Tally) { sum += t.Allowed })
	return sum
}

// A stop under load loses no call: every charged call was answered, on every
// edge, and every other one got an error.
func TestStopUnderLoadLosesNoCall(t *testing.T) {
	r := startDaemon(t, testConfig(t, oneRule))
	var answered atomic.Uint64
	var clients sync.WaitGroup
	for i := range 8 {
		cc := dial(t, r.edges.grpcAddr())
		clients.Go(func() { unaryLoad(rldv1.NewRateLimiterClient(cc), fmt.Sprint(i), &answered) })
		clients.Go(func() { streamLoad(rldv1.NewRateLimiterClient(cc), fmt.Sprint(i), &answered) })
		clients.Go(func() { httpLoad(r.edges.httpAddr(), fmt.Sprint(i), &answered) })
	}
	await.True(t, "a thousand calls were answered", func() bool { return answered.Load() > 1_000 })
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	await.Done(t, "the end of the clients", clients.Wait)
	if got, want := answered.Load(), r.charged(); got != want {
		t.Fatalf("%d calls were charged, %d answers came", want, got)
	}
}

// A daemon that stops answers calls for a while, although it reports that it is
// not ready.
func TestShutdownDelay(t *testing.T) {
	c := testConfig(t, oneRule)
	c.Shutdown.Delay = 3 * time.Second
	r := startDaemon(t, c)
	cc := dial(t, r.edges.grpcAddr())
	serving := func() bool {
		out, err := healthpb.NewHealthClient(cc).Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return out.Status == healthpb.HealthCheckResponse_SERVING
	}
	if !serving() {
		t.Fatal("not serving")
	}
	r.stop()
	await.True(t, "the daemon reports that it is not ready", func() bool { return r.ready() != nil && !serving() })
	if _, err := rldv1.NewRateLimiterClient(cc).Check(t.Context(), question("me")); err != nil {
		t.Fatalf("a call in the delay: %v", err)
	}
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
}

func unaryLoad(c rldv1.RateLimiterClient, user string, answered *atomic.Uint64) {
	for {
		if _, err := c.Check(context.Background(), question(user)); err != nil {
			return
		}
		answered.Add(1)
	}
}

func streamLoad(c rldv1.RateLimiterClient, user string, answered *atomic.Uint64) {
	s, err := c.CheckStream(context.Background())
	if err != nil {
		return
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		for s.Send(&rldv1.CheckFrame{Checks: []*rldv1.CheckRequest{question(user), question(user)}}) == nil {
		}
	})
	for {
		frame, err := s.Recv()
		if err != nil {
			break
		}
		answered.Add(uint64(len(frame.GetAnswers())))
	}
	sending.Wait()
}

func httpLoad(addr, user string, answered *atomic.Uint64) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		resp, err := client.Get("http://" + addr + "/v1/check?domain=edge&user=" + user)
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			return
		}
		answered.Add(1)
	}
}

// A changed file comes into force and counters stay. An invalid one changes
// nothing, which the metrics report.
func TestReload(t *testing.T) {
	c := testConfig(t, "domain: edge\ndescriptors:\n  - {key: user, rate_limit: {unit: year, requests_per_unit: 10}}\n")
	c.Limits.Poll = time.Hour // only by Reload
	r := startDaemon(t, c)
	client := rldv1.NewRateLimiterClient(dial(t, r.edges.grpcAddr()))
	remaining := func() uint64 {
		t.Helper()
		resp, err := client.Check(context.Background(), question("ann"))
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetStatuses()[0].GetRemaining()
	}
	write := func(text, logged string) {
		t.Helper()
		if err := os.WriteFile(c.Limits.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n := strings.Count(r.log.String(), logged)
		(&Handle{r.daemon, r.edges}).Reload()
		await.True(t, logged, func() bool { return strings.Count(r.log.String(), logged) > n })
	}
	if got := remaining(); got != 9 {
		t.Fatalf("%d remain, want 9", got)
	}
	write("domain: edge\ndescriptors:\n  - {key: user, rate_limit: {unit: year, requests_per_unit: 20}}\n", "limits reloaded")
	if got := remaining(); got != 18 {
		t.Fatalf("%d remain after the limit was raised to 20, want 18", got)
	}
	write("domain: edge\ndescriptors:\n  - {key: user, rate_limit: {unit: yaer}}\n", "the limits are invalid")
	if got := remaining(); got != 17 {
		t.Fatalf("%d remain after a broken file, want 17", got)
	}
	if page := get(t, r.edges.adminAddr(), "/metrics"); !strings.Contains(page, "rld_config_stale 1\n") {
		t.Fatal("the metrics do not report invalid limits")
	}
	write("domain: edge\ndescriptors:\n  - {key: user, rate_limit: {unit: day, requests_per_unit: 20}}\n",
		"its counters start empty")
	if got := remaining(); got != 19 {
		t.Fatalf("%d remain after the window changed, want 19", got)
	}
}

// A share_threshold is part of a counter.
func TestReloadOfShareThreshold(t *testing.T) {
	const file = "domain: edge\ndescriptors:\n  - {key: user, value: \"*\"%s, " +
		"rate_limit: {unit: year, requests_per_unit: 20}}\n"
	c := testConfig(t, fmt.Sprintf(file, ""))
	c.Limits.Poll = time.Hour // only by Reload
	r := startDaemon(t, c)
	for _, text := range []string{fmt.Sprintf(file, ", share_threshold: true"), fmt.Sprintf(file, "")} {
		const logged = "the share_threshold of a rule changed: its counters start empty"
		n := strings.Count(r.log.String(), logged)
		if err := os.WriteFile(c.Limits.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		(&Handle{r.daemon, r.edges}).Reload()
		await.True(t, logged, func() bool { return strings.Count(r.log.String(), logged) > n })
	}
}

// The error about an invalid file of a folder explains how to exclude it; the
// error about a named file does not.
func TestOtherFilesInAFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"limits.yaml": oneRule, "README": "- read me"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const hint = "RLD_LIMITS_NAMES=yaml"
	for _, tc := range []struct {
		path  string
		names config.Names
		err   string
		hint  bool
	}{
		{dir, config.NamesAll, "README:1:", true},
		{filepath.Join(dir, "README"), config.NamesAll, "README:1:", false},
		{dir, config.NamesYAML, "", false},
	} {
		c := testConfig(t, oneRule)
		c.Limits.Path, c.Limits.Names = tc.path, tc.names
		err := (&daemon{Options: Options{Config: c, Log: slog.New(slog.DiscardHandler)}}).build()
		switch text := fmt.Sprint(err); {
		case (err == nil) != (tc.err == ""):
			t.Errorf("%s, %s: %v", tc.path, tc.names, err)
		case err != nil && (!strings.Contains(text, tc.err) || strings.Contains(text, hint) != tc.hint):
			t.Errorf("%s, %s: hint %v expected of\n%v", tc.path, tc.names, tc.hint, err)
		}
	}
}

func TestMissingLimitsNameTheirSource(t *testing.T) {
	c := testConfig(t, oneRule)
	c.Limits.Path += ".missing"
	for from, want := range map[config.Origin]string{
		"env RLD_LIMITS": "limits (env RLD_LIMITS): " + c.Limits.Path + ": no such file or directory",
		"":               "limits: " + c.Limits.Path + ": no such file or directory",
	} {
		err := Run(context.Background(), Options{Config: c, LimitsFrom: from})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func get(t *testing.T, addr, path string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// The socket of a killed daemon is replaced. A socket that a daemon answers on,
// and a file that is not a socket, are not.
func TestUnixSocket(t *testing.T) {
	c := testConfig(t, oneRule)
	c.GRPC.UDS = filepath.Join(t.TempDir(), "rld.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.GRPC.UDS})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()

	r := startDaemon(t, c)
	resp, err := healthpb.NewHealthClient(dial(t, "unix:"+c.GRPC.UDS)).
		Check(context.Background(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	if err != nil || resp.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("health over the socket: %v, %v", resp, err)
	}
	second := &daemon{Options: Options{Config: c, Log: r.daemon.Log, Out: io.Discard}}
	if err := second.build(); err != nil {
		t.Fatal(err)
	}
	if _, err := second.listen(); err == nil || !strings.Contains(err.Error(), "is already in use") {
		t.Fatalf("a second daemon on the socket: %v", err)
	}
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(c.GRPC.UDS); !os.IsNotExist(err) {
		t.Fatalf("the socket is left behind: %v", err)
	}
	if err := os.WriteFile(c.GRPC.UDS, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	const problem = " exists and is not a socket: remove it or give another path (--grpc-uds)"
	if _, err := second.listen(); err == nil || !strings.Contains(err.Error(), c.GRPC.UDS+":"+problem) {
		t.Fatalf("a daemon on a file that is no socket: %v", err)
	}
	if b, err := os.ReadFile(c.GRPC.UDS); err != nil || string(b) != "precious" {
		t.Fatalf("the file is gone: %q, %v", b, err)
	}
}

// Run without limits serves the embedded examples, and the printed examples
// work.
func TestBannerCallsWork(t *testing.T) {
	c := config.Default()
	c.GRPC.Addr, c.HTTP.Addr, c.Admin.Addr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	var out lockedBuffer
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Options{Config: c, Out: &out, Version: "test"}) }()
	await.True(t, "the banner is printed", func() bool { return strings.Contains(out.String(), "rld check") })
	_, rest, _ := strings.Cut(out.String(), "curl -i 'http://")
	addr, path, _ := strings.Cut(rest[:strings.Index(rest, "'")], "/")
	if body := get(t, addr, "/"+path); !strings.Contains(body, `"allowed":true`) || !strings.Contains(body, `"limit":`) {
		t.Errorf("the call of the banner meets no limit: %s", body)
	}
	stop()
	if err := await.Value(t, "the end of the daemon", done); err != nil {
		t.Fatal(err)
	}
}

// The error names every listener that cannot be opened, and none stays open.
func TestTakenPorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c := testConfig(t, oneRule)
	c.HTTP.Addr = taken.Addr().String()
	c.Admin.Addr = "127.0.0.1:99999"
	err = Run(context.Background(), Options{Config: c})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"HTTP listener: " + c.HTTP.Addr + " is already in use, perhaps by another rld; give another address with --http-addr",
		"admin listener: 127.0.0.1:99999: ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}

// A daemon that all peers refuse for good is not ready: it would count alone.
func TestRefusedByAll(t *testing.T) {
	refused := func(reason string) link.Stream {
		return link.Stream{State: link.StateWaiting, Err: &link.Refused{Reason: reason, Text: "its " + reason + " differs"}}
	}
	gone := link.Stream{State: link.StateWaiting, Err: io.EOF}
	accepted := link.Stream{Incoming: true, State: link.StateUp}
	for name, tc := range map[string]struct {
		streams []link.Stream
		want    bool
	}{
		"no peers":          {nil, false},
		"another secret":    {[]link.Stream{refused(link.ReasonSecret), refused(link.ReasonSecret)}, true},
		"another version":   {[]link.Stream{refused(link.ReasonVersion)}, true},
		"other shards":      {[]link.Stream{refused(link.ReasonShards)}, true},
		"one peer is up":    {[]link.Stream{refused(link.ReasonSecret), {State: link.StateUp}}, false},
		"one dials it":      {[]link.Stream{refused(link.ReasonSecret), accepted}, false},
		"one is down":       {[]link.Stream{refused(link.ReasonSecret), gone}, false},
		"for a while":       {[]link.Stream{refused(link.ReasonPenalty)}, false},
		"before the result": {[]link.Stream{{State: link.StateConnecting}}, false},
	} {
		err := refusedByAll(tc.streams)
		if got := err != nil; got != tc.want || got && !strings.Contains(err.Error(), "differs") {
			t.Errorf("%s: %v, want an error: %v", name, err, tc.want)
		}
	}
}

// TestServeHTTPStaysPlain: a server without TLS that serves another listener
// first, which gives it a configuration of TLS, serves plain text.
func TestServeHTTPStaysPlain(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	s := &http.Server{Handler: http.NotFoundHandler()}
	serve := serveHTTP(s, lis)
	if err := s.Serve(other); err == nil || s.TLSConfig == nil {
		t.Fatalf("served with %v, configuration %v", err, s.TLSConfig)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve() }()
	r, err := http.Get("http://" + lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	s.Close()
	if err := await.Value(t, "the end of the server", ended); !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
