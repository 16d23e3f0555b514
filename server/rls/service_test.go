package rls_test

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/message"
	"github.com/georld/rld/server/rls"
)

// handler calls the handler of ShouldRateLimit as gRPC does, with a message
// as it came from the wire.
type handler struct {
	method grpc.MethodDesc
	server any
	codec  message.Codec
}

// RegisterService takes the place of a gRPC server.
func (h *handler) RegisterService(d *grpc.ServiceDesc, s any) { h.method, h.server = d.Methods[0], s }

func newHandler(s *rls.Service) *handler {
	h := &handler{codec: message.NewCodec()}
	s.Register(h)
	return h
}

func (h *handler) call(asked []byte) (mem.BufferSlice, error) {
	read := func(v any) error { return h.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(asked)}, v) }
	out, err := h.method.Handler(h.server, context.Background(), read, nil)
	if err != nil {
		return nil, err
	}
	return h.codec.Marshal(out)
}

// dial serves s in memory and returns a connection to it.
func dial(t *testing.T, s *rls.Service, o ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	srv := grpc.NewServer(append(o, grpc.ForceServerCodecV2(message.NewCodec()))...)
	s.Register(srv)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///rld",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return lis.DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		srv.Stop()
		if err := <-done; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	return conn
}

// TestOverTheWire asks with the generated client, through an interceptor, and
// compares with the answer in process.
func TestOverTheWire(t *testing.T) {
	e := answers(node.Status{Limit: limit(10), Remaining: 9, Reset: 5e9}, node.Status{Unlimited: true})
	rec := new(recorder)
	s := rls.New(e, dynamic(), rec)
	intercepted := ""
	conn := dial(t, s, grpc.UnaryInterceptor(
		func(ctx context.Context, in any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			intercepted = info.FullMethod
			return h(ctx, in)
		}))
	in := request(descriptor("a", "1"), descriptor("b", "2"))
	got, err := ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.ShouldRateLimit(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("the wire makes a difference (-in process +wire):\n%s", diff)
	}
	if diff := cmp.Diff(e.calls[0], e.calls[1]); diff != "" {
		t.Errorf("the engine was asked another question:\n%s", diff)
	}
	if intercepted != ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName {
		t.Errorf("the interceptor saw %q", intercepted)
	}
	if *rec != (recorder{decided: 2}) {
		t.Errorf("recorded %+v, want two decisions", *rec)
	}
}

// TestErrorsOfTheEngine distinguishes the caller's faults from rld's.
func TestErrorsOfTheEngine(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want error
		rec  recorder
	}{
		{
			&node.InputError{Descriptor: 1, Entry: 2, Problem: "key is too long"},
			status.Error(codes.InvalidArgument, "descriptor 1, entry 2: key is too long"),
			recorder{malformed: 1},
		},
		{errors.New("shard 3 is gone"), status.Error(codes.Internal, "shard 3 is gone"), recorder{}},
	} {
		e, rec := answers(), new(recorder)
		e.err = tt.err
		conn := dial(t, rls.New(e, server.DefaultSettings(), rec))
		client := ratelimitv3.NewRateLimitServiceClient(conn)
		_, err := client.ShouldRateLimit(context.Background(), request())
		if err == nil || err.Error() != tt.want.Error() {
			t.Errorf("got %v, want %v", err, tt.want)
		}
		if *rec != tt.rec {
			t.Errorf("recorded %+v, want %+v", *rec, tt.rec)
		}
	}
}

// TestMalformedBytes sends bytes that are no RateLimitRequest.
func TestMalformedBytes(t *testing.T) {
	valid := marshal(t, request(descriptor("key", "value")))
	const request = "malformed RateLimitRequest: "
	for _, tt := range []struct{ name, text, want string }{
		{"cut off", string(valid[:len(valid)-1]), request},
		{"noise", "\xff\xff\xff", request},
		{"entry of noise", "\x12\x04\x0a\x02\x0a\x09", "descriptor 0: malformed entry: "},
		{"descriptor of noise", "\x12\x01\x0a", request},
		{"hits of noise", "\x12\x03\x1a\x01\x08", request},
		{"limit of noise", "\x12\x03\x12\x01\x08", request},
	} {
		tt.want += "message ends in the middle of a field"
		_, err := newHandler(rls.New(answers(), server.DefaultSettings(), nil)).call([]byte(tt.text))
		if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != tt.want {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// front is an engine that resolves calls with package node and passes them.
type front struct{ *node.Matcher }

func (f *front) Check(_ context.Context, c *node.Call) error {
	if err := f.Resolve(c); err != nil {
		return err
	}
	c.Decision = node.Decision{Allowed: true, Refused: -1}
	return nil
}

func (f *front) RefundHits(c *node.Call) error { return f.Resolve(c) }

// TestHostileRequests brings what only the core can judge to it and its
// judgment back.
func TestHostileRequests(t *testing.T) {
	domain := rules.DomainNode{Name: "edge", Children: []rules.Node{{Key: "k", Limit: limit(5)}}}
	set, err := rules.NewSet([]rules.DomainNode{domain})
	if err != nil {
		t.Fatal(err)
	}
	f := &front{node.NewMatcher(set, rules.NewHasher([rules.SecretBytes]byte{}), node.MatcherOptions{})}
	h := newHandler(rls.New(f, server.DefaultSettings(), nil))
	broken := string(marshal(t, request(descriptor("a", "b"), descriptor("k", "vaXue"))))
	for _, tt := range []struct{ name, asked, want string }{
		{"no domain", string(marshal(t, &ratelimitv3.RateLimitRequest{})), "rate limit domain must not be empty"},
		{"no descriptors", string(marshal(t, request())), "rate limit descriptor list must not be empty"},
		{
			"1 MiB", string(marshal(t, request(descriptor("k", strings.Repeat("x", 1<<20))))),
			"descriptor 0, entry 0: value is 1048576 bytes long, at most 4096",
		},
		{
			"no UTF-8", strings.Replace(broken, "vaXue", "va\xffue", 1),
			"descriptor 1, entry 0: value is not valid UTF-8",
		},
		{"2^64-1 hits", string(marshal(t, request(withHits(descriptor("k", "v"), math.MaxUint64)))), ""},
	} {
		_, err := h.call([]byte(tt.asked))
		if got := status.Convert(err).Message(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if tt.want != "" && status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

func marshal(t testing.TB, in *ratelimitv3.RateLimitRequest) []byte {
	t.Helper()
	b, err := proto.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRegisteredAsInTheProto holds the hand-written description of the
// service to the proto file it names, for reflection and for clients.
func TestRegisteredAsInTheProto(t *testing.T) {
	srv := grpc.NewServer()
	rls.New(answers(), server.DefaultSettings(), nil).Register(srv)
	want := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(want, ratelimitv3.UnimplementedRateLimitServiceServer{})
	if diff := cmp.Diff(want.GetServiceInfo(), srv.GetServiceInfo()); diff != "" {
		t.Errorf("(-generated +ours):\n%s", diff)
	}
}

func TestAllocations(t *testing.T) {
	asked := marshal(t, request(descriptor("user", "u123")))
	e := &fixed{status: node.Status{Limit: limit(1000), Remaining: 999, Reset: 5e9}}
	h := newHandler(rls.New(e, server.DefaultSettings(), nil))
	allocs := testing.AllocsPerRun(1000, func() {
		out, err := h.call(asked)
		if err != nil {
			t.Fatal(err)
		}
		out.Free()
	})
	// The text, the answer, three headers of gRPC buffers and the closures of
	// this test.
	if allocs > 9 {
		t.Errorf("%.1f allocations for a call of one descriptor, at most 9", allocs)
	}
}

// fixed is an engine that allocates nothing.
type fixed struct {
	engine
	status node.Status
}

func (f *fixed) Check(_ context.Context, c *node.Call) error {
	c.Statuses = append(c.Statuses[:0], f.status)
	c.Decision = node.Decision{Allowed: true, Refused: -1}
	return nil
}

func BenchmarkHandler(b *testing.B) {
	asked := marshal(b, request(descriptor("user", "u123")))
	e := &fixed{status: node.Status{Limit: limit(1000), Remaining: 999, Reset: 5e9}}
	h := newHandler(rls.New(e, server.DefaultSettings(), nil))
	b.ReportAllocs()
	for b.Loop() {
		out, err := h.call(asked)
		if err != nil {
			b.Fatal(err)
		}
		out.Free()
	}
}
