package grpchost_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/georld/rld/server/grpchost"
	"github.com/georld/rld/server/message"
)

// probe is a service whose calls behave as their method is named.
type probe struct {
	entered, release chan struct{} // of Hold
	kept             chan struct{} // of Keep
	drained, waited  chan struct{}
	once             sync.Once
}

func newProbe() *probe {
	return &probe{
		entered: make(chan struct{}, 1), release: make(chan struct{}), kept: make(chan struct{}),
		drained: make(chan struct{}), waited: make(chan struct{}, 2),
	}
}

// keptBytes is what a call of Keep holds.
const keptBytes = 3 << 20

// bomb is a message that cannot be read.
type bomb struct{}

func (*bomb) ReadMessage(string) { panic("boom in a message") }

func (p *probe) Register(r grpc.ServiceRegistrar) {
	method := func(name string, read func() any, handle func() (any, error)) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: name, Handler: func(
			_ any, ctx context.Context, dec func(any) error, intercept grpc.UnaryServerInterceptor,
		) (any, error) {
			in := read()
			if err := dec(in); err != nil {
				return nil, err
			}
			info := &grpc.UnaryServerInfo{Server: p, FullMethod: "/test.Probe/" + name}
			return intercept(ctx, in, info, func(context.Context, any) (any, error) { return handle() })
		}}
	}
	text := func() any { return new(wrapperspb.StringValue) }
	empty := func() (any, error) { return new(emptypb.Empty), nil }
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Probe", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			method("Answer", text, empty),
			method("Panic", text, func() (any, error) { panic("boom in a call") }),
			method("Bomb", func() any { return new(bomb) }, empty),
			method("Hold", text, func() (any, error) {
				p.entered <- struct{}{}
				<-p.release
				return new(emptypb.Empty), nil
			}),
		},
		Streams: []grpc.StreamDesc{
			{StreamName: "PanicStream", ServerStreams: true, Handler: func(any, grpc.ServerStream) error {
				panic("boom in a stream")
			}},
			{StreamName: "Until", ServerStreams: true, Handler: func(_ any, ss grpc.ServerStream) error {
				if err := ss.SendMsg(new(emptypb.Empty)); err != nil {
					return err
				}
				<-p.drained
				return status.Error(codes.Unavailable, "drained")
			}},
			{StreamName: "Keep", ServerStreams: true, Handler: func(_ any, ss grpc.ServerStream) error {
				release := message.Hold(ss.Context(), keptBytes)
				p.kept <- struct{}{}
				select {
				case <-p.release:
				case <-ss.Context().Done():
				}
				release()
				p.kept <- struct{}{}
				return nil
			}},
		},
	}, p)
}

func (p *probe) Drain() { p.once.Do(func() { close(p.drained) }) }
func (p *probe) Wait()  { p.waited <- struct{}{} }

// host is a running Host.
type host struct {
	*grpchost.Host
	probe  *probe
	conn   *grpc.ClientConn
	served chan error
}

func start(t *testing.T, o grpchost.Options) *host {
	t.Helper()
	h := &host{probe: newProbe(), served: make(chan error, 1)}
	h.Host = grpchost.New(o, h.probe)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { h.served <- h.Serve(lis) }()
	h.conn = connect(t, lis.Addr().String())
	t.Cleanup(func() {
		h.Stop()
		if err := <-h.served; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	return h
}

func connect(t *testing.T, target string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func call(conn *grpc.ClientConn, method string) error {
	return conn.Invoke(context.Background(), "/test.Probe/"+method, wrapperspb.String("x"), new(emptypb.Empty))
}

func openStream(t *testing.T, h *host, method string) grpc.ClientStream {
	t.Helper()
	desc := &grpc.StreamDesc{ServerStreams: true}
	stream, err := h.conn.NewStream(context.Background(), desc, "/test.Probe/"+method)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestHealth(t *testing.T) {
	h := start(t, grpchost.DefaultOptions())
	client := healthpb.NewHealthClient(h.conn)
	check := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for _, name := range []string{"", "ratelimit", "test.Probe"} {
			out, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: name})
			if err != nil || out.Status != want {
				t.Errorf("health of %q is %v, error %v, want %s", name, out.GetStatus(), err, want)
			}
		}
	}
	check(healthpb.HealthCheckResponse_NOT_SERVING)
	h.SetServing(true)
	check(healthpb.HealthCheckResponse_SERVING)
	h.SetServing(false)
	check(healthpb.HealthCheckResponse_NOT_SERVING)
	_, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: "other"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("the health of an unknown service is %v", err)
	}
}

// TestReflection: only a host with it describes its services.
func TestReflection(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := reflectionpb.NewServerReflectionClient(start(t, grpchost.DefaultOptions()).conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("reflection that is off: %v", err)
	}
	o := grpchost.DefaultOptions()
	o.Reflection = true
	h := start(t, o)
	v1, err := reflectionpb.NewServerReflectionClient(h.conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := v1.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	}); err != nil {
		t.Fatal(err)
	}
	out, err := v1.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range out.GetListServicesResponse().GetService() {
		names = append(names, s.Name)
	}
	for _, want := range []string{
		"test.Probe", "grpc.health.v1.Health",
		"grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %q", want, names)
		}
	}
}

// TestPanicsEndTheirCallOnly panics in every place a handler can.
func TestPanicsEndTheirCallOnly(t *testing.T) {
	var mu sync.Mutex
	var caught []string
	var log bytes.Buffer
	o := grpchost.DefaultOptions()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	o.Panicked = func(method string) {
		mu.Lock()
		defer mu.Unlock()
		caught = append(caught, method)
	}
	h := start(t, o)
	for _, method := range []string{"Panic", "Bomb"} {
		if err := call(h.conn, method); status.Code(err) != codes.Internal {
			t.Errorf("%s: got %v, want Internal", method, err)
		}
	}
	stream := openStream(t, h, "PanicStream")
	if err := stream.RecvMsg(new(emptypb.Empty)); status.Code(err) != codes.Internal {
		t.Errorf("PanicStream: got %v, want Internal", err)
	}
	if err := call(h.conn, "Answer"); err != nil {
		t.Errorf("the next call failed: %v", err)
	}
	h.Stop()
	want := []string{"/test.Probe/Panic", "reading a message", "/test.Probe/PanicStream"}
	if !slices.Equal(caught, want) {
		t.Errorf("counted %q, want %q", caught, want)
	}
	for _, want := range []string{"boom in a call", "boom in a message", "boom in a stream", "host_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not tell of %q:\n%s", want, &log)
		}
	}
}

// TestPanicIsHiddenFromTheClient of the inside.
func TestPanicIsHiddenFromTheClient(t *testing.T) {
	err := call(start(t, grpchost.DefaultOptions()).conn, "Panic")
	if text := status.Convert(err).Message(); text != "internal error, see the log of the daemon" {
		t.Errorf("the client reads %q", text)
	}
}

func TestTooLargeMessage(t *testing.T) {
	o := grpchost.DefaultOptions()
	o.MaxMessageBytes = 1000
	h := start(t, o)
	large := wrapperspb.String(strings.Repeat("x", 2000))
	err := h.conn.Invoke(context.Background(), "/test.Probe/Answer", large, new(emptypb.Empty))
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "(2003 vs. 1000)") {
		t.Errorf("got %v, want ResourceExhausted with both sizes", err)
	}
}

// TestSeveralListeners serves TCP and a unix socket at a time.
func TestSeveralListeners(t *testing.T) {
	h := start(t, grpchost.DefaultOptions())
	path := filepath.Join(t.TempDir(), "s")
	lis, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(lis) }()
	for _, conn := range []*grpc.ClientConn{h.conn, connect(t, "unix://"+path)} {
		if err := call(conn, "Answer"); err != nil {
			t.Errorf("%s: %v", conn.Target(), err)
		}
	}
	h.Stop()
	if err := <-served; err != nil {
		t.Errorf("serving the socket ended with %v", err)
	}
}

// TestDrainLosesNoCall drains with a call in flight, a stream open and a
// client that watches the health.
func TestDrainLosesNoCall(t *testing.T) {
	h := start(t, grpchost.DefaultOptions())
	h.SetServing(true)
	watch, err := healthpb.NewHealthClient(h.conn).Watch(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := watch.Recv(); err != nil || out.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("watching: %v, error %v", out, err)
	}
	stream := openStream(t, h, "Until")
	if err := stream.RecvMsg(new(emptypb.Empty)); err != nil {
		t.Fatal(err)
	}
	held := make(chan error, 1)
	go func() { held <- call(h.conn, "Hold") }()
	<-h.probe.entered

	drained := make(chan error, 1)
	go func() { drained <- h.Drain(context.Background()) }()
	if err := stream.RecvMsg(new(emptypb.Empty)); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	for err == nil {
		_, err = watch.Recv()
	}
	if errors.Is(err, io.EOF) {
		t.Error("the watch ended as if it were complete")
	}
	select {
	case err := <-drained:
		t.Fatalf("drained with a call in flight: %v", err)
	default:
	}
	close(h.probe.release)
	if err := <-held; err != nil {
		t.Errorf("the call in flight was lost: %v", err)
	}
	if err := <-drained; err != nil {
		t.Errorf("draining: %v", err)
	}
	if len(h.probe.waited) == 0 {
		t.Error("the service was not waited for")
	}
}

// TestDrainIsBounded cuts off a call that does not end.
func TestDrainIsBounded(t *testing.T) {
	h := start(t, grpchost.DefaultOptions())
	held := make(chan error, 1)
	go func() { held <- call(h.conn, "Hold") }()
	<-h.probe.entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	drained := make(chan error, 1)
	go func() { drained <- h.Drain(ctx) }()
	if err := <-held; status.Code(err) != codes.Unavailable {
		t.Errorf("the call ended with %v", err)
	}
	close(h.probe.release)
	if err := <-drained; !errors.Is(err, context.Canceled) {
		t.Errorf("draining: %v, want that it was cut short", err)
	}
}

func TestServeAfterStop(t *testing.T) {
	h := grpchost.New(grpchost.DefaultOptions())
	h.Stop()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Serve(lis); err != nil {
		t.Errorf("got %v", err)
	}
	if _, err := lis.Accept(); err == nil {
		t.Error("the listener is still open")
	}
}

func TestServeFails(t *testing.T) {
	h := grpchost.New(grpchost.DefaultOptions())
	defer h.Stop()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lis.Close()
	if err := h.Serve(lis); err == nil || !strings.Contains(err.Error(), "gRPC on 127.0.0.1:") {
		t.Errorf("got %v, want an error that names the address", err)
	}
}
