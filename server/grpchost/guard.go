package grpchost

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/message"
)

// guard is the net under the handlers: a panic ends its call with Internal
// and leaves the process running.
type guard struct {
	log        *slog.Logger
	panicked   func(method string)
	streams    *streams
	authorizer *auth.Authorizer
}

// catch turns a panic of the surrounding function into *err.
func (g *guard) catch(method string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	if g.panicked != nil {
		g.panicked(method)
	}
	if g.log != nil {
		g.log.Error("panic in a gRPC handler",
			"method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
	*err = status.Error(codes.Internal, "internal error, see the log of the daemon")
}

// unary guards calls.
func (g *guard) unary(
	ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (_ any, err error) {
	defer g.catch(info.FullMethod, &err)
	return handle(ctx, in)
}

// stream guards streams. It also ends the streams that watch the health of
// the server when draining is done, as nothing else would.
func (g *guard) stream(draining context.Context) grpc.StreamServerInterceptor {
	return func(
		srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler,
	) (err error) {
		defer g.catch(info.FullMethod, &err)
		leave, err := g.streams.enter(ss.Context())
		if err != nil {
			return err
		}
		defer leave()
		if g.authorizer != nil && strings.HasPrefix(info.FullMethod, "/grpc.reflection.") {
			if err := g.authorizer.Known(auth.FromGRPC(ss.Context()), time.Now()); err != nil {
				return message.StatusOf(err).Err()
			}
		}
		if info.FullMethod == healthpb.Health_Watch_FullMethodName {
			ctx, cancel := context.WithCancel(ss.Context())
			defer cancel()
			defer context.AfterFunc(draining, cancel)()
			ss = &endedStream{ServerStream: ss, ctx: ctx}
		}
		return handle(srv, ss)
	}
}

// endedStream is a stream with another context.
type endedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the context that ends with the drain.
func (s *endedStream) Context() context.Context { return s.ctx }

// codec guards the reading of messages, which no interceptor surrounds.
type codec struct {
	message.Codec
	guard *guard
}

// maxOther bounds messages of health and reflection, in bytes.
const maxOther = 4 << 10

// Unmarshal reads a message.
func (c codec) Unmarshal(data mem.BufferSlice, v any) (err error) {
	defer c.guard.catch("reading a message", &err)
	if _, ours := v.(message.Reader); !ours && data.Len() > maxOther {
		return status.Errorf(codes.ResourceExhausted, "message of %d bytes: want at most %d", data.Len(), maxOther)
	}
	return c.Codec.Unmarshal(data, v)
}
