package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestUsage: wrong flags are refused before a call, with what would be right.
func TestUsage(t *testing.T) {
	good := "--target 127.0.0.1:1 --rate 10 --domain d k={key}"
	forward := "--protocol forward-auth --target http://127.0.0.1:1 --rate 10 "
	for _, c := range []struct{ args, want string }{
		{"--rate 10 --domain d k={key}", "no target: use --target"},
		{"--target 127.0.0.1:1 --domain d k=v", "--rate 0 makes no calls"},
		{good + " --rate -1", "--rate -1 makes no calls"},
		{good + " --rate NaN", "--rate NaN makes no calls"},
		{good + " --rate 2e6", "at most 1000000"},
		{good + " --rate 0.1 --for 2s", "makes no call: use a longer --for"},
		{good + " --protocol quic", `unknown protocol "quic": use one of rls, check, stream, forward-auth`},
		{good + " --zipf -1", "--zipf -1: want an exponent from 0"},
		{good + " --zipf NaN", "--zipf NaN: want an exponent from 0"},
		{good + " --keys 0", "--keys 0: want 1 to 10000000"},
		{good + " --arrivals bursts", `--arrivals "bursts": want constant or poisson`},
		{good + " --for 0s", "--for 0s: want more than 0"},
		{good + " --timeout 2h", "--timeout 2h0m0s: want more than 0"},
		{good + " --in-flight 0", "--in-flight 0: want 1 to"},
		{good + " --connections 0", "--connections 0: want 1 to"},
		{good + " --rounds 3", "--rounds is for --compare"},
		{good + " --compare 127.0.0.1:2 --rounds 0", "--rounds 0: want 1 to"},
		{good + " -o yaml", "-o yaml: want table or json"},
		{good + " --target localhost", `"localhost" is neither host:port nor unix:PATH`},
		{good + " --compare localhost", `"localhost" is neither host:port nor unix:PATH`},
		{good + " --target http://127.0.0.1:1", "--protocol rls takes host:port"},
		{good + " --tls-cert f", "--tls-cert and --tls-key need each other"},
		{good + " --header a:b", "--header is not for --protocol rls"},
		{"--target 127.0.0.1:1 --rate 10 k=v", "no domain"},
		{"--target 127.0.0.1:1 --rate 10 --domain d", "nothing to ask about"},
		{"--target 127.0.0.1:1 --rate 10 --domain d k", `"k" is no KEY=VALUE`},
		{"--target 127.0.0.1:1 --rate 10 --domain d {key}=v", "can be in a value alone"},
		{"--target 127.0.0.1:1 --rate 10 --domain d --keys 5 k=v", "5 keys, and all calls would have the same one"},
		{"--target 127.0.0.1:1 --rate 10 --domain d --zipf 1 k=v", "use {key} in a value"},
		{forward + "k=v", "forward-auth has no descriptors"},
		{forward + "--domain d", "--domain is not for --protocol forward-auth"},
		{forward + "--header Host:x", "it belongs to the connection"},
		{forward + "--token-file f --header authorization:x", "--token-file writes it"},
		{forward + "--gateway a --header X-Forwarded-URI:/", "with --gateway it has --path"},
		{forward + "--gateway a --header X-Forwarded-Method:GET", "with --gateway it has --method"},
		{forward + "--header X", "is no NAME: VALUE"},
		{forward + "--path orders", `--path "orders": want a path`},
		{forward + "--method G,T", "is no method of HTTP"},
		{forward + "--gateway a/b", "is no name of a mapping"},
		{forward + "--gateway a --target http://h:1/x", "with --gateway the target is the daemon"},
		{forward + "--target http://h:1/x?y=1", "want a URL without a user, a query and a fragment"},
		{forward + "--target ftp://h", "is neither a URL nor host:port nor unix:PATH"},
	} {
		cmd := New(io.Discard, io.Discard, func(err error) error {
			t.Errorf("%s: the load began: %v", c.args, err)
			return err
		})
		cmd.SetArgs(strings.Fields(c.args))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.args, err, c.want)
		}
	}
}

func TestUnreachableTarget(t *testing.T) {
	failed := errors.New("failed")
	var out bytes.Buffer
	cmd := New(&out, io.Discard, func(err error) error { return errors.Join(failed, err) })
	cmd.SetArgs(strings.Fields("--target unix:/nonexistent/socket --rate 10 --domain d k=v"))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(context.Background())
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "cannot reach a daemon at unix:/nonexistent/socket") || out.Len() > 0 {
		t.Errorf("error %v, output %q", err, &out)
	}
}

func TestHead(t *testing.T) {
	o := &options{protocol: protocolForward, method: "GET", path: "/v1/{key}?a=b", headers: []string{"X-User: u-{key}"}}
	var err error
	if o.request, err = o.newRequest(nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ gateway, target, want string }{
		{
			"", "http://g.example:8000/base/",
			"GET /base/v1/k1?a=b HTTP/1.1\r\nHost: g.example:8000\r\nX-User: u-k1\r\nUser-Agent: rld-bench\r\n\r\n",
		},
		{
			"edge", "unix:/run/rld.sock",
			"GET /v1/forward-auth/edge HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Method: GET\r\n" +
				"X-Forwarded-Uri: /v1/k1?a=b\r\nX-User: u-k1\r\nUser-Agent: rld-bench\r\n\r\n",
		},
	} {
		o.gateway = c.gateway
		a, err := o.parse(c.target)
		if err != nil {
			t.Fatal(err)
		}
		head, err := o.head(&a)
		if got := with(head, "k1"); err != nil || got != c.want {
			t.Errorf("%s: %q, error %v; want %q", c.target, got, err, c.want)
		}
	}
}

// TestHeaderOnce: a header that the client's request has is not written again.
func TestHeaderOnce(t *testing.T) {
	o := &options{protocol: protocolForward, method: "GET", path: "/", headers: []string{
		"user-agent: own", "Authorization: Basic x", "X-Forwarded-Uri: /forged", "X-Forwarded-Method: PUT",
	}}
	var err error
	if o.request, err = o.newRequest(nil); err != nil {
		t.Fatal(err)
	}
	head, err := o.head(&address{host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	want := "GET / HTTP/1.1\r\nHost: h\r\nuser-agent: own\r\nAuthorization: Basic x\r\n" +
		"X-Forwarded-Uri: /forged\r\nX-Forwarded-Method: PUT\r\n\r\n"
	if head != want {
		t.Errorf("%q, want %q", head, want)
	}
}

func TestShown(t *testing.T) {
	for seconds, want := range map[float64]string{
		0.000412: "412 µs", 0.00125: "1.25 ms", 0.0123: "12.3 ms", 2: "2.00 s", 120: "120 s", 0.9996: "1.00 s",
	} {
		if got := shown(seconds); got != want {
			t.Errorf("%v s is %q, want %q", seconds, got, want)
		}
	}
	if got := decimal(12345.67); got != "12,345.7" {
		t.Errorf("%s", got)
	}
}

// flaky denies each second call, fails each third one, and ends the load with
// call number `end`.
type flaky struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	calls atomic.Int64
	end   int64
	stop  func()
}

func (f *flaky) ShouldRateLimit(
	context.Context, *ratelimitv3.RateLimitRequest,
) (*ratelimitv3.RateLimitResponse, error) {
	n := f.calls.Add(1)
	if n == f.end {
		f.stop()
	}
	code := ratelimitv3.RateLimitResponse_OK
	switch {
	case n%3 == 0:
		return nil, status.Error(codes.ResourceExhausted, "too\nmuch")
	case n%2 == 0:
		code = ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	return &ratelimitv3.RateLimitResponse{OverallCode: code}, nil
}

// serve serves Envoy's service until the test ends or stop is called.
func serve(t *testing.T, service ratelimitv3.RateLimitServiceServer) (addr string, stop func()) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(g, service)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(lis) })
	t.Cleanup(func() {
		g.Stop()
		serving.Wait()
	})
	return lis.Addr().String(), g.Stop
}

// TestInterruptedWarmUp: a load that is ended in the warm-up prints no result.
func TestInterruptedWarmUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	addr, _ := serve(t, &flaky{end: 10, stop: cancel})
	var out bytes.Buffer
	cmd := New(&out, io.Discard, func(err error) error { return err })
	cmd.SetArgs(strings.Fields("--rate 500 --warm 1h --domain d k=v --target " + addr))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(ctx)
	if err == nil || !strings.Contains(err.Error(), "ended before the first call that counts") || out.Len() > 0 {
		t.Errorf("error %v, output %q", err, &out)
	}
}

// TestOtherPort: the HTTP address for gRPC, and the gRPC address for HTTP.
func TestOtherPort(t *testing.T) {
	grpcAddr, _ := serve(t, denying{})
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	httpAddr := server.Listener.Addr().String()
	for _, c := range []struct{ args, want string }{
		{"--domain d k=v --target " + httpAddr, httpAddr + " answers in HTTP/1.1: is it a daemon's HTTP address?"},
		{"--domain d k=v --protocol stream --target " + httpAddr, "stream takes its gRPC address"},
		{"--protocol forward-auth --target " + grpcAddr, grpcAddr + " is no HTTP/1.1: is it a daemon's gRPC address?"},
	} {
		cmd := New(io.Discard, io.Discard, func(err error) error { return err })
		cmd.SetArgs(strings.Fields(c.args + " --rate 500"))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.args, err, c.want)
		}
	}
}

// TestInterrupted: an interrupted load prints its figures so far, with the
// errors by code.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := &flaky{end: 100, stop: cancel}
	addr, _ := serve(t, f)
	var out bytes.Buffer
	cmd := New(&out, io.Discard, func(err error) error { return err })
	cmd.SetArgs(strings.Fields("--rate 500 --for 1h --warm 0s -o json --domain d k=v --target " + addr))
	if err := cmd.ExecuteContext(ctx); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	c := r.Calls
	// The first call does not count.
	if all := f.calls.Load() - 1; !r.Interrupted || c.Due < 99 || c.Due-c.Unsent != all ||
		c.Allowed+c.Denied+c.Failed != all || c.Failed < 33 || c.Denied < 33 {
		t.Errorf("%+v of %d calls", r, all)
	}
	if len(r.Errors) != 1 || r.Errors[0] != (failed{"ResourceExhausted", c.Failed, "too\nmuch"}) {
		t.Errorf("errors %+v", r.Errors)
	}
	// A failed call counts with the timeout.
	if r.Latency.P99 < 1.9 || r.Latency.P50 > 1.9 {
		t.Errorf("latencies %+v, want 2 s for a third of the calls", r.Latency)
	}
}

// denying denies each call.
type denying struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
}

func (denying) ShouldRateLimit(
	context.Context, *ratelimitv3.RateLimitRequest,
) (*ratelimitv3.RateLimitResponse, error) {
	return &ratelimitv3.RateLimitResponse{OverallCode: ratelimitv3.RateLimitResponse_OVER_LIMIT}, nil
}

// TestDenialsOnly: a target that allows no call is no failure, and a warning on
// stderr and in JSON.
func TestDenialsOnly(t *testing.T) {
	grpcAddr, _ := serve(t, denying{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/forward-auth/edge" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	forward := "--protocol forward-auth --target " + server.URL
	for _, c := range []struct {
		args, addr string
		hint       bool
	}{
		{"--domain d k=v --target " + grpcAddr, grpcAddr, false},
		{"--domain d k=v --rounds 1 --target " + grpcAddr + " --compare " + grpcAddr, grpcAddr, false},
		{forward + " --gateway edge", server.URL, true},
		{forward + "/v1/forward-auth/edge --path /", "", false},
	} {
		var out, progress bytes.Buffer
		cmd := New(&out, &progress, func(err error) error { return err })
		cmd.SetArgs(strings.Fields(c.args + " --rate 500 --for 50ms --warm 0s -o json"))
		if err := cmd.Execute(); err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
		text := c.addr + ": no call was allowed: the latencies are those of denials"
		has := strings.Contains(progress.String(), "warning: "+text) && strings.Contains(out.String(), text)
		hint := strings.Contains(progress.String(), "Use --target http://HOST/v1/forward-auth/edge without --gateway")
		if has != (c.addr != "") || hint != c.hint {
			t.Errorf("%s: stderr %s, output %s", c.args, &progress, &out)
		}
	}
}
