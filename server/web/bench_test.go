package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/georld/rld/gateway"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// fixed is an engine with one answer that costs nothing.
type fixed struct{ status node.Status }

func (*fixed) Rules() *rules.Set { return nil }

func (f *fixed) Check(_ context.Context, c *node.Call) error {
	c.Statuses = append(c.Statuses, f.status)
	c.Decision = node.Decision{Allowed: !f.status.Over, Refused: -1}
	if f.status.Over {
		c.Decision.Refused = 0
	}
	return nil
}

func newFixed() *fixed {
	l := &rules.Limit{Requests: 100, Unit: rules.Minute, Multiplier: 1}
	r := &rules.Rule{Path: "tier=free > user_id > endpoint", Limit: l}
	return &fixed{node.Status{Rule: r, Limit: l, Remaining: 42, Reset: 17 * time.Second}}
}

// sink is a ResponseWriter that keeps nothing but its header.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             { clear(s.header) }

func hotRequest() *http.Request {
	const target = "/v1/check?domain=edge&tier=free&user_id=abc&endpoint=/login"
	return httptest.NewRequest(http.MethodGet, target, nil)
}

func BenchmarkCheck(b *testing.B) {
	h, r, w := New(Options{Engine: newFixed()}), hotRequest(), &sink{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

// BenchmarkForwardAuth is the question of a gateway with two descriptors.
func BenchmarkForwardAuth(b *testing.B) {
	h := New(Options{Engine: newFixed(), Gateways: map[string]gateway.Settings{"edge": {
		Domain: "edge",
		Descriptors: [][]gateway.Entry{
			{{Key: "api_key", Source: gateway.Source{Header: "X-Api-Key", Hash: true}}, {Key: "path", Source: gateway.Source{Template: []string{"/v1/*"}}}},
			{{Key: "ip", Source: gateway.Source{Client: &gateway.Client{Hops: 1}}}},
		},
	}}})
	r, w := httptest.NewRequest(http.MethodGet, "/v1/forward-auth/edge", nil), &sink{http.Header{}}
	for name, value := range map[string]string{
		"X-Api-Key": "k1", "X-Original-URI": "/v1/orders", "X-Original-Method": "GET", "X-Forwarded-For": "192.0.2.1",
	} {
		r.Header.Set(name, value)
	}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
