package message

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that Codec falls back to
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
)

// Reader is a message that reads itself. ReadMessage owns text and returns no
// error: the handler reports faults to the caller with its own text and status
// code.
type Reader interface{ ReadMessage(text string) }

// Encoded is a message that is bytes already. It is sent once; its memory is
// not the sender's anymore then.
type Encoded struct{ data mem.Buffer }

// Encode returns b as a message.
func Encode(b []byte) *Encoded { return &Encoded{mem.SliceBuffer(b)} }

// EncodeFrom returns b as a message; it comes back to a pool when it has been
// sent.
func EncodeFrom(b *[]byte, pool mem.BufferPool) *Encoded { return &Encoded{mem.NewBuffer(b, pool)} }

// Codec is the gRPC codec of a server whose handlers take Readers and return
// Encoded messages. It hands every other message to the protobuf codec. The
// zero value is not usable: see NewCodec.
type Codec struct{ proto encoding.CodecV2 }

// NewCodec returns a codec, which is safe for concurrent use.
func NewCodec() Codec { return Codec{proto: encoding.GetCodecV2("proto")} }

// Name returns "proto": the bytes are the same.
func (Codec) Name() string { return "proto" }

// Marshal returns the bytes of an *Encoded or a proto.Message.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	e, ok := v.(*Encoded)
	if !ok {
		return c.proto.Marshal(v)
	}
	return mem.BufferSlice{e.data}, nil
}

// Unmarshal lets a Reader read data, or fills in a proto.Message.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(Reader)
	if !ok {
		return c.proto.Unmarshal(data, v)
	}
	r.ReadMessage(text(data))
	return nil
}

// text copies data into one string.
func text(data mem.BufferSlice) string {
	if len(data) == 1 {
		return string(data[0].ReadOnlyData())
	}
	var b strings.Builder
	b.Grow(data.Len())
	for _, part := range data {
		b.Write(part.ReadOnlyData())
	}
	return b.String()
}

// StatusOf returns the gRPC status of a call that was not decided.
func StatusOf(err error) *status.Status {
	var input *node.InputError
	var refusal *auth.Refusal
	switch {
	case errors.As(err, &refusal):
		return status.New(codeOf(refusal), err.Error())
	case errors.As(err, &input):
		return status.New(codes.InvalidArgument, err.Error())
	case errors.Is(err, server.ErrWitness): // another daemon can answer
		return status.New(codes.Unavailable, err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err)
	}
	return status.New(codes.Internal, err.Error())
}

// codeOf returns the code of a call whose caller may not make it.
func codeOf(r *auth.Refusal) codes.Code {
	switch r.Reason.Kind() {
	case auth.Unauthenticated:
		return codes.Unauthenticated
	case auth.Exhausted:
		return codes.ResourceExhausted
	default:
		return codes.PermissionDenied
	}
}

// question is a request of a unary method, with a Held.
type question interface {
	Reader
	From(ctx context.Context)
	Release()
}

// Method returns a unary method of a server's service that reads a question Q
// from the wire and answers with the bytes of its response. start returns the
// question of each call, and free gets it back when the call is over.
func Method[Q question](
	server any, service, name string, start func() Q, free func(Q), answer func(context.Context, Q) ([]byte, error),
) grpc.MethodDesc {
	handle := func(ctx context.Context, q any) (any, error) {
		b, err := answer(ctx, q.(Q))
		if err != nil {
			return nil, err
		}
		return Encode(b), nil
	}
	info := grpc.UnaryServerInfo{Server: server, FullMethod: "/" + service + "/" + name}
	return grpc.MethodDesc{MethodName: name, Handler: func(
		_ any, ctx context.Context, read func(any) error, intercept grpc.UnaryServerInterceptor,
	) (any, error) {
		q := start()
		defer free(q)
		q.From(ctx) // a client that does not end its call keeps it from being decided
		defer q.Release()
		if err := read(q); err != nil {
			return nil, err
		}
		if intercept != nil {
			return intercept(ctx, q, &info, handle)
		}
		return handle(ctx, q)
	}}
}
