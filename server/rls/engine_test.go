package rls_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/rls"
)

// asked is what an engine was asked.
type asked struct {
	Domain      string
	Descriptors []rules.Descriptor
}

// engine records its calls and returns prepared answers. It does not check the
// bounds of package node.
type engine struct {
	mu       sync.Mutex
	calls    []asked
	refunds  []asked
	refunded []node.Status
	statuses []node.Status
	decision node.Decision
	err      error
}

func (e *engine) Check(_ context.Context, c *node.Call) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, copyOf(c))
	c.Statuses = append(c.Statuses[:0], e.statuses...)
	c.Decision = e.decision
	return e.err
}

// copyOf returns a copy of the question of a call.
func copyOf(c *node.Call) asked {
	a := asked{Domain: c.Domain}
	for _, d := range c.Descriptors {
		d.Entries = slices.Clone(d.Entries)
		a.Descriptors = append(a.Descriptors, d)
	}
	return a
}

// RefundHits records the call, and answers with refunded.
func (e *engine) RefundHits(c *node.Call) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refunds = append(e.refunds, copyOf(c))
	c.Statuses = append(c.Statuses[:0], e.refunded...)
	return nil
}

func (*engine) Rules() *rules.Set { return nil }

// answers returns an engine that answers with statuses, and passes the call
// unless one of them refuses.
func answers(statuses ...node.Status) *engine {
	e := &engine{statuses: statuses, decision: node.Decision{Allowed: true, Refused: -1}}
	for i := range statuses {
		if statuses[i].Over && !statuses[i].Limit.Shadow && e.decision.Allowed {
			e.decision = node.Decision{Refused: i}
		}
	}
	return e
}

// limit returns a limit of n an hour.
func limit(n uint32) *rules.Limit { return &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: n} }

// recorder counts its events.
type recorder struct{ decided, malformed int }

func (r *recorder) Decided(e server.Edge, took time.Duration) {
	if e == server.EdgeRLS && took >= 0 {
		r.decided++
	}
}

func (r *recorder) Malformed(e server.Edge) {
	if e == server.EdgeRLS {
		r.malformed++
	}
}

// ask asks a service of an engine with settings.
func ask(
	t *testing.T, e *engine, settings server.Settings, in *ratelimitv3.RateLimitRequest,
) *ratelimitv3.RateLimitResponse {
	t.Helper()
	out, err := rls.New(e, settings, nil).ShouldRateLimit(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
