package rlqs

import (
	"context"
	"io"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/message"
)

// engine has one limit of a minute for all calls of domain edge.
type engine struct {
	mu      sync.Mutex
	rule    *rules.Rule
	used    map[int64]uint64
	refunds []uint64
	err     error
	wait    time.Duration // of a call
}

func newEngine(requests uint32) *engine {
	l := &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: requests}
	return &engine{rule: &rules.Rule{Limit: l}, used: map[int64]uint64{}}
}

func (*engine) Rules() *rules.Set {
	set, err := rules.NewSet(nil)
	if err != nil {
		panic(err)
	}
	return set
}

func (e *engine) Check(_ context.Context, c *node.Call) error {
	time.Sleep(e.wait)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	now := time.Now()
	window := now.Truncate(time.Minute)
	used, limit, n := e.used[window.Unix()], uint64(e.rule.Limit.Requests), c.Descriptors[0].Hits
	st := node.Status{Rule: e.rule, Limit: e.rule.Limit, Over: used+n > limit, Reset: window.Add(time.Minute).Sub(now)}
	st.Retry = st.Reset
	if c.Decision = (node.Decision{Allowed: !st.Over}); !st.Over && !c.Peek {
		used += n
		e.used[window.Unix()] = used
	}
	st.Remaining = limit - used
	c.Statuses, c.Receipts = []node.Status{st}, []node.Receipt{{Hits: n, Window: window.UnixMilli()}}
	return nil
}

func (e *engine) Refund(_ *node.Receipt, hits uint64) node.Refunded {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refunds = append(e.refunds, hits)
	return node.Refunded{Hits: hits}
}

// pipe is a stream in memory.
type pipe struct {
	grpc.ServerStream
	ctx  context.Context
	up   chan *quotav3.RateLimitQuotaUsageReports // closed: the client is done
	down chan *quotav3.RateLimitQuotaResponse
}

func newPipe(ctx context.Context) *pipe {
	return &pipe{ctx: ctx, up: make(chan *quotav3.RateLimitQuotaUsageReports), down: make(chan *quotav3.RateLimitQuotaResponse, 10)}
}

func (p *pipe) Context() context.Context { return p.ctx }

func (p *pipe) RecvMsg(to any) error {
	select {
	case m, ok := <-p.up:
		if !ok {
			return io.EOF
		}
		b, err := proto.Marshal(m)
		to.(message.Reader).ReadMessage(string(b))
		return err
	case <-p.ctx.Done():
		return status.FromContextError(p.ctx.Err()).Err()
	}
}

func (p *pipe) SendMsg(m any) error {
	data, err := message.NewCodec().Marshal(m)
	if err != nil {
		return err
	}
	out := new(quotav3.RateLimitQuotaResponse)
	err = proto.Unmarshal(data.Materialize(), out)
	p.down <- out
	return err
}

func reports(domain string, allowed, denied uint64) *quotav3.RateLimitQuotaUsageReports {
	return &quotav3.RateLimitQuotaUsageReports{Domain: domain, BucketQuotaUsages: []*quotav3.RateLimitQuotaUsageReports_BucketQuotaUsage{{
		BucketId:           &quotav3.BucketId{Bucket: map[string]string{"k": "v"}},
		NumRequestsAllowed: allowed, NumRequestsDenied: denied,
	}}}
}

// recorder counts its events.
type recorder struct{ decided, malformed int }

func (r *recorder) Decided(e server.Edge, _ time.Duration) {
	if e == server.EdgeRLQS {
		r.decided++
	}
}

func (r *recorder) Malformed(e server.Edge) {
	if e == server.EdgeRLQS {
		r.malformed++
	}
}

// TestStreamActsWithoutReports: without a report a stream sends the tokens of a
// new window, and abandons the bucket of a silent client.
func TestStreamActsWithoutReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(80 * time.Second)))
		rec := new(recorder)
		s := New(newEngine(100), server.DefaultSettings(), rec)
		p := newPipe(t.Context())
		done := make(chan error)
		go func() { done <- serve(s, p) }()
		p.up <- reports("edge", 1, 0)
		first := next(p)
		time.Sleep(20 * time.Second)
		p.up <- reports("", 10, 0)
		next(p)
		start := time.Now()
		pushed := next(p)
		if took := time.Since(start); took != 20*time.Second {
			t.Errorf("pushed after %v, want the start of the window", took)
		}
		a, b := tokens(first), tokens(pushed)
		if a.GetMaxTokens() != 10 || b.GetMaxTokens() < 10 || a.FillInterval.Nanos == b.FillInterval.Nanos {
			t.Errorf("assigned %v, then %v", a, b)
		}
		var last *quotav3.RateLimitQuotaResponse_BucketAction
		for last == nil || last.GetAbandonAction() == nil {
			last = next(p)
		}
		if took := time.Since(start); took > 2*time.Minute {
			t.Errorf("a silent client is abandoned after %v", took)
		}
		close(p.up)
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.Wait()
		if *rec != (recorder{decided: 2}) {
			t.Errorf("recorded %+v", *rec)
		}
	})
}

// TestSlowStream reports buckets whose charges wait. Each action is sent once
// it is decided, and a drain does not wait for the others.
func TestSlowStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(105 * time.Second)))
		e := newEngine(10_000)
		e.wait = 150 * time.Millisecond
		s := New(e, server.DefaultSettings(), nil)
		p := newPipe(t.Context())
		done := make(chan error)
		go func() { done <- serve(s, p) }()
		m := reports("edge", 0, 1)
		for i := range 30 {
			u := proto.CloneOf(m.BucketQuotaUsages[0])
			u.BucketId.Bucket["k"] = strconv.Itoa(i)
			m.BucketQuotaUsages = append(m.BucketQuotaUsages, u)
		}
		start := time.Now()
		end := start.Truncate(time.Minute).Add(time.Minute)
		p.up <- m
		for i := range 10 {
			a := next(p)
			if took := time.Since(start); took > time.Duration(i+1)*2*e.wait {
				t.Errorf("action %d is sent after %v", i, took)
			}
			if ttl := a.GetQuotaAssignmentAction().AssignmentTimeToLive.AsDuration(); time.Now().Add(ttl).After(end) {
				t.Errorf("action %d lives for %v, and the window for %v", i, ttl, time.Until(end))
			}
		}
		s.Drain()
		start = time.Now()
		check(t, <-done, codes.Unavailable)
		if took := time.Since(start); took > 4*e.wait {
			t.Errorf("the stream drained after %v", took)
		}
		close(p.up)
		s.Wait()
	})
}

// TestWindow reads when windows end: of a debt and of a sliding window that
// last longer, and of an empty one.
func TestWindow(t *testing.T) {
	now := time.UnixMilli(60_000 + 45_000)
	for _, tt := range []struct {
		name        string
		limit       rules.Limit
		reset       time.Duration
		ends, spans time.Duration
	}{
		{"fixed", rules.Limit{}, 15 * time.Second, 15 * time.Second, 0},
		{"new", rules.Limit{}, time.Minute, time.Minute, 0},
		{"debt", rules.Limit{CarryDebt: true}, 195 * time.Second, 15 * time.Second, 0},
		{"sliding", rules.Limit{Algorithm: rules.SlidingWindow}, 75 * time.Second, 15 * time.Second, 0},
		{"empty", rules.Limit{Algorithm: rules.SlidingWindow}, 0, 15 * time.Second, 0},
		{"log", rules.Limit{Algorithm: rules.SlidingLog}, 20 * time.Second, 0, time.Minute},
		{"bucket", rules.Limit{Algorithm: rules.TokenBucket, Burst: 5}, 20 * time.Second, 0, 30 * time.Second},
		{"closed bucket", rules.Limit{Algorithm: rules.LeakyBucket}, 0, 0, time.Millisecond},
	} {
		tt.limit.Unit, tt.limit.Multiplier = rules.Minute, 1
		if tt.limit.Requests = 10; tt.name == "closed bucket" {
			tt.limit.Requests = 0
		}
		ends, length := window(&node.Status{Limit: &tt.limit, Reset: tt.reset}, now)
		if got := span(&tt.limit); ends != tt.ends || got != tt.spans || (length > 0) != (ends > 0) {
			t.Errorf("%s: ends in %v of %v, spans %v; want %v and %v", tt.name, ends, length, got, tt.ends, tt.spans)
		}
	}
}

// next returns the next action.
func next(p *pipe) *quotav3.RateLimitQuotaResponse_BucketAction { return (<-p.down).BucketAction[0] }

func tokens(a *quotav3.RateLimitQuotaResponse_BucketAction) *typev3.TokenBucket {
	return a.GetQuotaAssignmentAction().GetRateLimitStrategy().GetTokenBucket()
}

// TestShadowAllowsAll shows that the global shadow mode denies nothing.
func TestShadowAllowsAll(t *testing.T) {
	settings := server.DefaultSettings()
	settings.Shadow = true
	p := newPipe(t.Context())
	s := New(newEngine(0), settings, nil)
	go serve(s, p)
	p.up <- reports("edge", 1, 0)
	if a := next(p); a.GetQuotaAssignmentAction().GetRateLimitStrategy().GetBlanketRule() != typev3.RateLimitStrategy_ALLOW_ALL {
		t.Errorf("assigned %v", a)
	}
	close(p.up)
}

// TestAuthorization reports with right, wrong and missing credentials.
func TestAuthorization(t *testing.T) {
	for _, tt := range []struct {
		name, token string
		want        codes.Code
	}{
		{"right", "right", codes.OK},
		{"missing", "", codes.Unauthenticated},
		{"wrong", "wrong", codes.Unauthenticated},
		{"wrong domain", "other", codes.PermissionDenied},
		{"wrong verb", "reads", codes.PermissionDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			settings := server.DefaultSettings()
			settings.Authorizer = auth.NewAuthorizer(auth.Tokens{
				{Name: "right", SHA256: auth.Hash("right"), Domains: []string{"edge"}},
				{Name: "other", SHA256: auth.Hash("other"), Domains: []string{"edge2"}},
				{Name: "reads", SHA256: auth.Hash("reads"), Domains: []string{"*"}, Verb: auth.Read},
			}, nil)
			ctx := t.Context()
			if tt.token != "" {
				ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", "Bearer "+tt.token))
			}
			e := newEngine(100)
			p := newPipe(ctx)
			done := make(chan error)
			go func() { done <- serve(New(e, settings, nil), p) }()
			select {
			case p.up <- reports("edge", 1, 0):
				go close(p.up)
			case err := <-done:
				check(t, err, tt.want)
				return
			}
			check(t, <-done, tt.want)
			if charged := len(e.used) > 0; charged != (tt.want == codes.OK) {
				t.Errorf("charged: %v", charged)
			}
		})
	}
}

func check(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%v, want %v", err, want)
	}
}

// TestWitness asks a daemon that decides nothing.
func TestWitness(t *testing.T) {
	e := newEngine(100)
	e.err = server.ErrWitness
	p := newPipe(t.Context())
	done := make(chan error)
	go func() { done <- serve(New(e, server.DefaultSettings(), nil), p) }()
	p.up <- reports("edge", 1, 0)
	check(t, <-done, codes.Unavailable)
}
