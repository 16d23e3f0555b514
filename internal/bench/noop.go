package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
)

// noop answers every call with the same message, without looking: what an RLS
// server costs that decides nothing.
type noop struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	answer *ratelimitv3.RateLimitResponse
}

// newNoop returns a service whose answer has the fields of rld's answer for
// benchLimits and, within a few bytes, its size.
func newNoop() *noop {
	return &noop{answer: &ratelimitv3.RateLimitResponse{
		OverallCode: ratelimitv3.RateLimitResponse_OK,
		Statuses: []*ratelimitv3.RateLimitResponse_DescriptorStatus{{
			Code: ratelimitv3.RateLimitResponse_OK,
			CurrentLimit: &ratelimitv3.RateLimitResponse_RateLimit{
				RequestsPerUnit: benchRequests, Unit: ratelimitv3.RateLimitResponse_RateLimit_HOUR,
			},
			LimitRemaining:     benchRequests - 1,
			DurationUntilReset: &durationpb.Duration{Seconds: 1_800},
		}},
	}}
}

// ShouldRateLimit returns the answer.
func (n *noop) ShouldRateLimit(
	context.Context, *ratelimitv3.RateLimitRequest,
) (*ratelimitv3.RateLimitResponse, error) {
	return n.answer, nil
}

// noopServer returns an ordinary gRPC server with generated code and with rld's
// transport options that affect speed: the difference between the two is the
// cost of rld itself. (Shared write buffers are grpc's default.)
func noopServer() *grpc.Server {
	s := grpc.NewServer(
		grpc.NumStreamWorkers(64),
		grpc.StaticStreamWindowSize(256<<10),
		grpc.StaticConnWindowSize(1<<20),
	)
	ratelimitv3.RegisterRateLimitServiceServer(s, newNoop())
	return s
}

// serveNoop is the no-op server's process: it prints where it listens and
// serves until its input ends.
func serveNoop(in io.Reader, out io.Writer) {
	lis := must(net.Listen("tcp", "127.0.0.1:0"))
	s := noopServer()
	go func() {
		// Whatever ends the input ends the server.
		_, _ = io.Copy(io.Discard, in)
		s.Stop()
	}()
	fmt.Fprintln(out, lis.Addr())
	// The input may end before there is anything to stop.
	if err := s.Serve(lis); !errors.Is(err, grpc.ErrServerStopped) {
		check(err)
	}
}
