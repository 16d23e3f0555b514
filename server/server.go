// Package server holds the parts that the edges share: the engine that decides
// and the settings of answers. The edges are its folders: rls (Envoy), api
// (native gRPC), web (HTTP) and admin.
package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/auth"
)

// Engine decides calls. Implementations are safe for concurrent use.
type Engine interface {
	// Check decides c and fills in c.Statuses and c.Decision. It waits for
	// nothing but the owners of limits that have one: at most until they have
	// had the time that the settings give them, and not beyond ctx, whose error
	// it returns then. It returns a *node.InputError for a malformed call.
	// Nothing is charged where it returns an error.
	Check(ctx context.Context, c *node.Call) error
	// Rules returns the rules in force.
	Rules() *rules.Set
}

// ErrWitness is the error of a call at a daemon that decides nothing.
var ErrWitness = errors.New("this daemon only votes in the control log (control.voter: only): ask a daemon of another region")

// Edge names a way in, as metrics carry it.
type Edge string

// The edges.
const (
	EdgeRLS    Edge = "rls"
	EdgeNative Edge = "native"
	EdgeStream Edge = "stream"
	EdgeHTTP   Edge = "http"
	EdgeRLQS   Edge = "rlqs"
)

// Recorder receives the events of the edges. Implementations are safe for
// concurrent use and neither wait nor allocate.
type Recorder interface {
	// Decided is called once a decision (on a stream once a frame, and once for
	// each question that waited for an owner) with the time from the parsed
	// question to the answer.
	Decided(e Edge, took time.Duration)
	// Malformed is called once a question that was refused unread.
	Malformed(e Edge)
}

// NoRecorder records nothing.
type NoRecorder struct{}

// Decided does nothing.
func (NoRecorder) Decided(Edge, time.Duration) {}

// Malformed does nothing.
func (NoRecorder) Malformed(Edge) {}

// Settings is how the edges answer.
type Settings struct {
	// Shadow admits every call; the statuses keep their enforced outcome
	// (upstream's SHADOW_MODE).
	Shadow bool
	RLS
	// LegacyHeaders makes the HTTP edge add X-RateLimit-* to every answer.
	LegacyHeaders bool
	// DocumentationURL goes into the body of a denial; "" leaves it out.
	DocumentationURL string
	// Authorizer admits callers; nil admits all. An edge calls it for each
	// call, before anything is charged.
	Authorizer *auth.Authorizer
}

// RLS is how the RLS edge answers.
type RLS struct {
	// Headers returns rate limit headers (upstream's
	// LIMIT_RESPONSE_HEADERS_ENABLED) under the names below.
	Headers                                   bool
	LimitHeader, RemainingHeader, ResetHeader string
	// DynamicMetadata echoes the request and returns the metadata of its rules
	// (upstream's RESPONSE_DYNAMIC_METADATA).
	DynamicMetadata bool
	// NegativeHits accepts descriptors with is_negative_hits, which give hits
	// back (upstream's ENABLE_NEGATIVE_HITS).
	NegativeHits bool
}

// DefaultSettings returns upstream's defaults.
func DefaultSettings() Settings {
	return Settings{RLS: RLS{
		LimitHeader:     "RateLimit-Limit",
		RemainingHeader: "RateLimit-Remaining",
		ResetHeader:     "RateLimit-Reset",
	}}
}

var calls = sync.Pool{New: func() any { return new(node.Call) }}

// NewCall returns an empty call, perhaps a used one.
func NewCall() *node.Call { return calls.Get().(*node.Call) }

// FreeCall takes a call back. The caller keeps no part of it.
func FreeCall(c *node.Call) {
	c.Reset()
	calls.Put(c)
}
