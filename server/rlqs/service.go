package rlqs

import (
	"cmp"
	"sync"

	"google.golang.org/grpc"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
)

// ServiceName is the full name of the service.
const ServiceName = "envoy.service.rate_limit_quota.v3.RateLimitQuotaService"

// Engine decides calls and refunds their charges. Implementations are safe for
// concurrent use.
type Engine interface {
	server.Engine
	// Refund gives up to hits of a receipt of this engine back to its window,
	// once.
	Refund(r *node.Receipt, hits uint64) node.Refunded
}

// Service is the RLQS edge. It is safe for concurrent use.
type Service struct {
	engine   Engine
	settings server.Settings
	recorder server.Recorder

	drain    chan struct{} // closed by Drain
	draining sync.Once
	readers  sync.WaitGroup // one a stream
}

// New returns the edge to an engine. A nil recorder records nothing.
func New(engine Engine, settings server.Settings, recorder server.Recorder) *Service {
	recorder = cmp.Or(recorder, server.Recorder(server.NoRecorder{}))
	return &Service{engine: engine, settings: settings, recorder: recorder, drain: make(chan struct{})}
}

// Register adds the service to a gRPC server, which must use message.Codec.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: ServiceName,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: "StreamRateLimitQuotas", Handler: serve, ServerStreams: true, ClientStreams: true,
		}},
		Metadata: "envoy/service/rate_limit_quota/v3/rlqs.proto",
	}, s)
}

// Drain ends every stream, now and later. It does not wait for that.
func (s *Service) Drain() { s.draining.Do(func() { close(s.drain) }) }

// Wait returns when no stream is being read anymore. Call it after the gRPC
// server has stopped.
func (s *Service) Wait() { s.readers.Wait() }
