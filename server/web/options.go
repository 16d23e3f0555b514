package web

import (
	"cmp"
	"context"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/georld/rld/gateway"
	"github.com/georld/rld/server"
)

// RLS answers one Envoy rate limit request. An error that wraps a
// *node.InputError or carries one of the gRPC codes InvalidArgument, Unknown
// and Unimplemented blames the request; any other one means that rld failed.
type RLS func(context.Context, *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error)

// Options configures the HTTP edge. It is read only after New.
type Options struct {
	// Engine decides. Required.
	Engine server.Engine
	// RLS answers /json, for callers that Settings.Authorizer admits; nil
	// leaves that path out.
	RLS RLS
	// Recorder receives each decision; nil records nothing. RLS records /json,
	// except for bodies that never reach it.
	Recorder server.Recorder
	// Settings is how to answer. Its Shadow, LegacyHeaders, DocumentationURL
	// and Authorizer are used here.
	Settings server.Settings
	// Ready reports whether the daemon serves and is not draining; it must not
	// block. Required.
	Ready func() bool
	// Mapping is what /api/v1/rate_limit makes of its parameters. It must
	// have passed Validate.
	Mapping Mapping
	// Gateways are the mappings of /v1/forward-auth/ by their names. They must
	// have passed Validate.
	Gateways map[string]gateway.Settings
	// Faulty is called with each faulty request of a gateway, by the name of
	// the mapping; nil records nothing. It neither waits nor allocates.
	Faulty func(name string, reason gateway.Reason)
	// Now reads the clock, for latencies and for answers that hold a time of
	// day; nil means time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Recorder = cmp.Or(o.Recorder, server.Recorder(server.NoRecorder{}))
	if o.Faulty == nil {
		o.Faulty = func(string, gateway.Reason) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
