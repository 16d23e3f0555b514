package grpchost

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/georld/rld/server/message"
)

// healthName is the name that gateways ask the health of the reference by.
const healthName = "ratelimit"

// Service is an edge that lives in a Host.
type Service interface {
	// Register adds the service to a gRPC server.
	Register(grpc.ServiceRegistrar)
	// Drain ends the service's streams once the questions they have read are
	// answered. It does not wait.
	Drain()
	// Wait returns when nothing of the service runs anymore. It is called
	// after the server has stopped.
	Wait()
}

// Host is a gRPC server with its services, health and reflection. It is safe
// for concurrent use.
type Host struct {
	server   *grpc.Server
	health   *health.Server
	names    []string // of what has a health
	services []Service

	draining context.Context // done when Drain has begun
	drain    context.CancelFunc
}

// New returns a host of services. Its health is NOT_SERVING until SetServing;
// it answers calls all the same.
func New(o Options, services ...Service) *Host {
	h := &Host{health: health.NewServer(), services: services}
	h.draining, h.drain = context.WithCancel(context.Background())
	g := &guard{log: o.Log, panicked: o.Panicked, authorizer: o.Authorizer, streams: &streams{log: o.Log, refused: o.RefusedStream}}
	h.server = grpc.NewServer(append(o.serverOptions(),
		grpc.ForceServerCodecV2(codec{message.NewCodec(), g}),
		grpc.UnaryInterceptor(g.unary),
		grpc.StreamInterceptor(g.stream(h.draining)),
	)...)
	for _, s := range services {
		s.Register(h.server)
	}
	h.names = []string{"", healthName}
	for name := range h.server.GetServiceInfo() {
		h.names = append(h.names, name)
	}
	healthpb.RegisterHealthServer(h.server, h.health)
	if o.Reflection {
		reflection.Register(h.server)
	}
	h.SetServing(false)
	return h
}

// SetServing sets the health of all services. It does nothing once the host
// drains.
func (h *Host) SetServing(serving bool) {
	st := healthpb.HealthCheckResponse_NOT_SERVING
	if serving {
		st = healthpb.HealthCheckResponse_SERVING
	}
	for _, name := range h.names {
		h.health.SetServingStatus(name, st)
	}
}

// Serve answers on a listener, and closes it, until Drain or Stop; then it
// returns nil. It may be called for several listeners at a time. A listener
// handed over after Drain or Stop is closed at once.
func (h *Host) Serve(lis net.Listener) error {
	err := h.server.Serve(lis)
	if err == nil || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return fmt.Errorf("gRPC on %s: %w", lis.Addr(), err)
}

// Drain stops gracefully: health turns NOT_SERVING, new connections and calls
// are refused, calls in flight end, and streams end once their received
// questions are answered. When ctx ends first, Drain closes the rest and
// returns its error. No handler runs when it returns.
func (h *Host) Drain(ctx context.Context) error {
	h.closeDown()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.server.GracefulStop()
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		h.server.Stop()
		<-done
		err = fmt.Errorf("calls were cut off while draining gRPC: %w", ctx.Err())
	}
	h.wait()
	return err
}

// Stop cuts off everything at once. It may follow Drain. No handler runs
// anymore when it returns.
func (h *Host) Stop() {
	h.closeDown()
	h.server.Stop()
	h.wait()
}

// closeDown signals the start of the drain.
func (h *Host) closeDown() {
	h.health.Shutdown()
	h.drain()
	for _, s := range h.services {
		s.Drain()
	}
}

func (h *Host) wait() {
	for _, s := range h.services {
		s.Wait()
	}
}
