package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/georld/rld/daemon"
	"github.com/georld/rld/internal/load"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/api"
	"github.com/georld/rld/server/grpchost"
)

// short is the length of a job in a test.
const short = 20 * time.Millisecond

// listen serves on loopback until the test ends, and returns the address.
func listen(t *testing.T, serve func(net.Listener) error, stop func()) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := serve(lis); err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		serving.Wait()
	})
	return lis.Addr().String()
}

func testClient(t *testing.T) *client {
	c := newClient()
	t.Cleanup(c.close)
	return c
}

// took returns the latencies of a result.
func took(t *testing.T, r *result) *hdr.Histogram {
	t.Helper()
	h := load.NewHistogram()
	r.mergeInto(h)
	return h
}

func TestLoad(t *testing.T) {
	s := noopServer()
	target := listen(t, s.Serve, s.Stop)
	c := testClient(t)
	for _, j := range []job{
		{Kind: kindProbe, Target: target},
		{Kind: kindClosed, Target: target, Flight: 4, Length: short},
		{Kind: kindClosed, Target: target, Flight: 1, Length: short},
		{Kind: kindOpen, Target: target, Rate: 1_000, Length: short},
		{Kind: kindOpen, Target: target, Rate: 1_000, Warm: short, Length: short},
	} {
		r, err := c.do(t.Context(), j)
		if err != nil {
			t.Errorf("%+v: %v", j, err)
			continue
		}
		switch j.Kind {
		case kindProbe:
			if r.Bytes == 0 {
				t.Errorf("%+v: an answer of no bytes", j)
			}
		case kindOpen:
			if want := int64(short / time.Millisecond); r.Checks != want {
				t.Errorf("%+v: %d calls, want the %d that were planned", j, r.Checks, want)
			}
			fallthrough
		default:
			if h := took(t, &r); r.Checks == 0 || r.Elapsed <= 0 || h.TotalCount() != r.Checks || h.Min() <= 0 {
				t.Errorf("%+v: %+v", j, r)
			}
		}
	}
}

// stalled answers nothing until all callers of an open loop wait, and for a
// while more.
type stalled struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	waiting sync.WaitGroup
	let     chan struct{}
}

func (s *stalled) ShouldRateLimit(
	context.Context, *ratelimitv3.RateLimitRequest,
) (*ratelimitv3.RateLimitResponse, error) {
	select {
	case <-s.let:
	default:
		s.waiting.Done()
		<-s.let
	}
	return newNoop().answer, nil
}

// A server that stalls delays the calls that were planned meanwhile; all of
// them must show it, and not only the ones that were in flight.
func TestOpenLoopCountsFromThePlannedInstant(t *testing.T) {
	s := &stalled{let: make(chan struct{})}
	s.waiting.Add(openCallers)
	g := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(g, s)
	target := listen(t, g.Serve, g.Stop)
	// All calls, many more than there are callers, are planned for the time
	// that the server stalls.
	const planned, stall = 4 * openCallers, 50 * time.Millisecond
	var letting sync.WaitGroup
	letting.Go(func() {
		s.waiting.Wait()
		time.AfterFunc(2*stall, func() { close(s.let) })
	})
	j := job{Kind: kindOpen, Target: target, Rate: int(planned * time.Second / stall), Length: stall}
	r, err := testClient(t).do(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	letting.Wait()
	if r.Checks < planned || r.Checks > planned+1 { // The interval is rounded down.
		t.Errorf("%d calls, want the %d that were planned", r.Checks, planned)
	}
	if quickest := time.Duration(took(t, &r).Min()); quickest < stall {
		t.Errorf("a call took %v although every call waited for %v at least", quickest, stall)
	}
}

func TestStream(t *testing.T) {
	set := benchRules(t)
	e, err := daemon.NewEngine(daemon.EngineConfig{Node: node.Default(), MaxKeys: users})
	if err != nil {
		t.Fatal(err)
	}
	e.SetRules(set, node.MatcherOptions{})
	h := grpchost.New(grpchost.DefaultOptions(), api.New(e, server.DefaultSettings(), nil))
	target := listen(t, h.Serve, h.Stop)
	c := testClient(t)
	for _, frame := range []int{1, 8} {
		j := job{Kind: kindStream, Target: target, Flight: 64, Frame: frame, Length: short}
		r, err := c.do(t.Context(), j)
		if err != nil {
			t.Errorf("%+v: %v", j, err)
		}
		if r.Checks == 0 || r.Checks%int64(frame) != 0 || r.Elapsed < short {
			t.Errorf("%+v: %+v, want whole frames", j, r)
		}
	}
}

// Checks at a rate are as many as were planned, and refusals are counted.
func TestStreamAtARate(t *testing.T) {
	text := fmt.Sprintf("%s  - key: few\n    rate_limit: {unit: hour, requests_per_unit: 3}\n", benchLimits())
	set, found := limits.Parse([]limits.File{{Name: "few.yaml", Data: []byte(text)}}, limits.Options{})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	e, err := daemon.NewEngine(daemon.EngineConfig{Node: node.Default(), MaxKeys: users})
	if err != nil {
		t.Fatal(err)
	}
	e.SetRules(set, node.MatcherOptions{})
	h := grpchost.New(grpchost.DefaultOptions(), api.New(e, server.DefaultSettings(), nil))
	target := listen(t, h.Serve, h.Stop)
	j := job{
		Kind: kindStream, Target: target, More: []string{target}, Ask: asked{"few", []int{1}},
		Flight: 64, Rate: 2_000, Frame: 4, Length: 100 * time.Millisecond, Window: time.Millisecond,
	}
	r, err := testClient(t).do(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	var sum load.Tally
	for _, w := range r.Windows {
		sum.Allowed += w.Allowed
		sum.Refused += w.Refused
	}
	if r.Checks != 200 || sum.Allowed > 3 || sum.Refused == 0 || sum.Refused > 197 {
		t.Errorf("%d checks, of them %+v in whole windows; want the 200 that were planned, 3 allowed at most", r.Checks, sum)
	}
	j.Window = 0
	if _, err := testClient(t).do(t.Context(), j); err == nil {
		t.Error("refusals were taken for answers without anybody to count them")
	}
}

func TestStreamAgainstAServerWithoutStreamsFails(t *testing.T) {
	s := noopServer()
	target := listen(t, s.Serve, s.Stop)
	j := job{Kind: kindStream, Target: target, Flight: 64, Frame: 1, Length: time.Minute}
	if r, err := testClient(t).do(t.Context(), j); err == nil {
		t.Errorf("%+v, want an error", r)
	}
}

func TestWrongAnswersFailTheJob(t *testing.T) {
	over := newNoop()
	over.answer.OverallCode = ratelimitv3.RateLimitResponse_OVER_LIMIT
	g := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(g, over)
	target := listen(t, g.Serve, g.Stop)
	c := testClient(t)
	for _, k := range []kind{kindProbe, kindClosed, kindOpen, "nonsense"} {
		j := job{Kind: k, Target: target, Flight: 1, Rate: 100, Length: short}
		if r, err := c.do(t.Context(), j); err == nil {
			t.Errorf("%s: %+v, want an error", k, r)
		}
	}
}
