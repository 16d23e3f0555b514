package grpchost_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/internal/connlimit"
	"github.com/georld/rld/server/grpchost"
)

// bounded is a host behind a listener with bounds.
type bounded struct {
	*host
	lis  *connlimit.Listener
	addr string
}

func startBounded(t *testing.T, o grpchost.Options) *bounded {
	t.Helper()
	b := &bounded{host: start(t, o)}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.addr = lis.Addr().String()
	b.lis = connlimit.New(lis, connlimit.Options{
		Name: "grpc", Bounds: connlimit.Bounds{Established: 200, Unfinished: 10},
	})
	go func() { _ = b.Serve(b.lis) }()
	return b
}

// closed reports how many connections were closed for a reason.
func (b *bounded) closed(r connlimit.Reason) uint64 { return b.lis.Stats().Closed[r] }

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, call uint32, payload []byte) []byte {
	f := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return append(binary.BigEndian.AppendUint32(f, call), payload...)
}

// raw is a connection of HTTP/2 whose frames a test writes.
type raw struct {
	net.Conn
	gone chan struct{} // closed when the server has closed it
}

func dialRaw(t *testing.T, addr string) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r := &raw{Conn: conn, gone: make(chan struct{})}
	r.write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, nil))
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		close(r.gone)
	}()
	return r
}

// write writes frames. The server may have closed the connection.
func (r *raw) write(parts ...[]byte) {
	for _, p := range parts {
		_, _ = r.Write(p)
	}
}

// header is the frame that begins a call without completing it.
func header(call uint32, method string) []byte {
	var block headerBlock
	e := hpack.NewEncoder(&block)
	for _, f := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", "/test.Probe/" + method},
		{":authority", "test"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}) // in no table
	}
	return frame(1, 4, call, block)
}

type headerBlock []byte

func (b *headerBlock) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// isGone waits until the server has closed the connection.
func (r *raw) isGone(t *testing.T) {
	t.Helper()
	await.Value(t, "the connection is closed", r.gone)
}

// TestCancelled cancels calls as fast as it can on one connection, some on
// another one, and late on a third one.
func TestCancelled(t *testing.T) {
	o := grpchost.DefaultOptions()
	o.MaxCancelledCalls = 50
	b := startBounded(t, o)
	cancelled := []byte{0, 0, 0, 8}
	modest := dialRaw(t, b.addr)
	for i := range 50 {
		call := uint32(2*i + 1)
		modest.write(header(call, "Answer"), frame(3, 0, call, cancelled))
	}
	rapid := dialRaw(t, b.addr)
	for i := range 500 { // in less than some seconds
		call := uint32(2*i + 1)
		rapid.write(header(call, "Answer"), frame(3, 0, call, cancelled))
	}
	rapid.isGone(t)
	if got := b.closed(connlimit.ReasonCancelled); got != 1 {
		t.Errorf("%d connections closed for cancelled calls, want 1", got)
	}
	late := dialRaw(t, b.addr)
	for from := 0; from < 500; from += 100 {
		for i := from; i < from+100; i++ {
			late.write(header(uint32(2*i+1), "Answer"))
		}
		begun := time.Now()
		await.True(t, "the calls are old", func() bool { return time.Since(begun) > 20*time.Millisecond })
		for i := from; i < from+100; i++ {
			late.write(frame(3, 0, uint32(2*i+1), cancelled))
		}
	}
	for _, r := range []*raw{modest, late} {
		select {
		case <-r.gone:
			t.Error("a connection was closed that cancelled few calls, or late")
		default:
		}
	}
}

// TestIncompleteCalls begins more calls than a connection may leave incomplete.
// One byte does not complete them.
func TestIncompleteCalls(t *testing.T) {
	b := startBounded(t, grpchost.DefaultOptions())
	r := dialRaw(t, b.addr)
	for i := range 201 {
		call := uint32(2*i + 1)
		r.write(header(call, "Answer"), frame(0, 0, call, []byte{0}))
	}
	r.isGone(t)
	if got := b.closed(connlimit.ReasonIncomplete); got != 1 {
		t.Errorf("%d connections closed for incomplete calls, want 1", got)
	}
	conn := connect(t, b.addr)
	for range 300 { // complete ones do not count
		if err := call(conn, "Answer"); err != nil {
			t.Fatal(err)
		}
	}
	if s := b.lis.Stats(); s.Established != 1 {
		t.Errorf("stats %+v, want one established connection", s)
	}
}

// TestIncompleteCallsOfAll has many connections with as many incomplete calls
// as they may have: the worst ones are closed, and not one with few.
func TestIncompleteCallsOfAll(t *testing.T) {
	b := startBounded(t, grpchost.DefaultOptions())
	honest := dialRaw(t, b.addr)
	honest.write(header(1, "Until"))
	for range 25 {
		r := dialRaw(t, b.addr)
		var all []byte
		for i := range 200 {
			all = append(all, header(uint32(2*i+1), "Answer")...)
		}
		r.write(all)
	}
	await.True(t, "the worst connections are closed", func() bool { return b.closed(connlimit.ReasonIncomplete) >= 4 })
	select {
	case <-honest.gone:
		t.Error("the connection with one open stream was closed")
	default:
	}
}

// parts begins n calls on a connection, each with a message of a megabyte whose
// last bytes do not come.
func (r *raw) parts(n int) {
	const size = 1<<20 - 1
	for i := range n {
		call := uint32(2*i + 1)
		r.write(header(call, "Answer"), frame(0, 0, call, binary.BigEndian.AppendUint32([]byte{0}, size)))
		for range size / (16 << 10) {
			r.write(frame(0, 0, call, make([]byte, 16<<10)))
		}
	}
}

// TestBytesOfIncompleteCalls sends more parts of messages than a connection may
// leave incomplete, and than all may: the worst ones are closed.
func TestBytesOfIncompleteCalls(t *testing.T) {
	b := startBounded(t, grpchost.DefaultOptions())
	honest := dialRaw(t, b.addr)
	honest.parts(1)
	r := dialRaw(t, b.addr)
	r.parts(12)
	r.isGone(t)
	if got := b.closed(connlimit.ReasonBytes); got != 1 {
		t.Errorf("%d connections closed for their bytes, want 1", got)
	}
	for range 8 {
		dialRaw(t, b.addr).parts(4)
	}
	await.True(t, "the worst connections are closed", func() bool { return b.closed(connlimit.ReasonBytes) >= 3 })
	select {
	case <-honest.gone:
		t.Error("the connection with one part was closed")
	default:
	}
}

// TestPieces sends a message byte by byte.
func TestPieces(t *testing.T) {
	b := startBounded(t, grpchost.DefaultOptions())
	r := dialRaw(t, b.addr)
	r.write(header(1, "Answer"))
	for _, x := range []byte{0, 0, 0, 1, 0, 1, 2, 3} {
		r.write(frame(0, 0, 1, []byte{x}))
	}
	r.isGone(t)
	if got := b.closed(connlimit.ReasonPieces); got != 1 {
		t.Errorf("%d connections closed for pieces, want 1", got)
	}
}

// TestHeldBytes has calls wait that keep their requests: the connection with
// the most is closed. What they keep no more does not count.
func TestHeldBytes(t *testing.T) {
	b := startBounded(t, grpchost.DefaultOptions())
	keep := func(r *raw, call uint32) {
		r.write(header(call, "Keep"))
		<-b.probe.kept
	}
	worst := dialRaw(t, b.addr)
	keep(worst, 1)
	keep(worst, 3)
	var others []*raw
	for range 4 { // 18 MiB in all with the last one
		r := dialRaw(t, b.addr)
		keep(r, 1)
		others = append(others, r)
	}
	worst.isGone(t)
	for range 2 {
		<-b.probe.kept // not any more
	}
	if got := b.closed(connlimit.ReasonBytes); got != 1 {
		t.Errorf("%d connections closed for their bytes, want 1", got)
	}
	close(b.probe.release)
	for range others {
		<-b.probe.kept
	}
	for i, r := range others[:3] {
		keep(r, 3)
		<-b.probe.kept
		select {
		case <-r.gone:
			t.Errorf("connection %d with few bytes was closed", i)
		default:
		}
	}
}

// TestStreamsOfAConnection opens more streams than a connection may have.
func TestStreamsOfAConnection(t *testing.T) {
	refused := make(chan struct{}, 10)
	o := grpchost.DefaultOptions()
	o.RefusedStream = func() { refused <- struct{}{} }
	h := start(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(ctx context.Context) grpc.ClientStream {
		desc := &grpc.StreamDesc{ServerStreams: true}
		stream, err := h.conn.NewStream(ctx, desc, "/test.Probe/Until")
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	first, end := context.WithCancel(ctx)
	for i := range 100 {
		at := ctx
		if i == 0 {
			at = first
		}
		if err := open(at).RecvMsg(new(emptypb.Empty)); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
	err := open(ctx).RecvMsg(new(emptypb.Empty))
	if status.Code(err) != codes.ResourceExhausted || len(refused) != 1 {
		t.Errorf("stream 101: %v, %d refused, want ResourceExhausted", err, len(refused))
	}
	if err := call(h.conn, "Answer"); err != nil {
		t.Errorf("a call beside the streams: %v", err)
	}
	other := connect(t, h.conn.Target())
	if err := call(other, "Answer"); err != nil {
		t.Error(err)
	}
	end()
	h.probe.Drain() // ends the others, too
	await.True(t, "a stream is opened", func() bool { return open(ctx).RecvMsg(new(emptypb.Empty)) == nil })
}

// TestSilentConnections has connections without a handshake: they do not keep a
// caller out.
func TestSilentConnections(t *testing.T) {
	b := startBounded(t, grpchost.DefaultOptions())
	for range 30 {
		conn, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	await.True(t, "the oldest connections are closed", func() bool { return b.closed(connlimit.ReasonUnfinished) >= 20 })
	if err := call(connect(t, b.addr), "Answer"); err != nil {
		t.Error(err)
	}
	if s := b.lis.Stats(); s.Established != 1 || s.Unfinished > 10 {
		t.Errorf("stats %+v, want one established connection", s)
	}
}

// TestStreamsOfAll has connections with as many streams as they may have: those
// beyond the bound of all are refused.
func TestStreamsOfAll(t *testing.T) {
	b := startBounded(t, grpchost.DefaultOptions())
	var conn *grpc.ClientConn
	for i := range 1_025 {
		if i%100 == 0 {
			conn = connect(t, b.addr)
		}
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/test.Probe/Until")
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(stream.SendMsg(new(emptypb.Empty)), stream.CloseSend())
		if err == nil {
			err = stream.RecvMsg(new(emptypb.Empty))
		}
		if refused := status.Code(err) == codes.ResourceExhausted; refused != (i == 1_024) {
			t.Fatalf("stream %d of all: %v", i+1, err)
		}
	}
}

// TestLargeHealth asks for the health of a service with a long name, which a
// stream would keep.
func TestLargeHealth(t *testing.T) {
	h := start(t, grpchost.DefaultOptions())
	_, err := healthpb.NewHealthClient(h.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: strings.Repeat("x", 5_000)})
	if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "want at most 4096") { // gRPC's code
		t.Errorf("%v, want a message of at most 4096 bytes", err)
	}
}
