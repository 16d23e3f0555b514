package web

import (
	"net/http"

	"github.com/georld/rld/server"
)

// The paths, as messages name them.
const (
	checkPath     = "/v1/check"
	rateLimitPath = "/api/v1/rate_limit"
	jsonPath      = "/json"
	healthPath    = "/healthcheck"
)

// handler serves all paths. It is immutable and safe for concurrent use.
type handler struct {
	opts Options
}

// New returns the HTTP edge. It is safe for concurrent use.
func New(o Options) http.Handler {
	o = o.withDefaults()
	return &handler{opts: o}
}

// ServeHTTP routes by the exact path: no redirects and no cleaning, since the
// callers are programs.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == checkPath:
		h.check(w, r)
	case r.URL.Path == rateLimitPath:
		h.rateLimit(w, r)
	case r.URL.Path == jsonPath && h.opts.RLS != nil:
		h.envoy(w, r)
	case r.URL.Path == healthPath:
		h.health(w, r)
	default:
		h.notFound(w, r)
	}
}

// check serves /v1/check.
func (h *handler) check(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		h.notAllowed(w, r, "GET, HEAD, POST")
		return
	}
	x := h.exchange()
	defer server.FreeCall(x.call)
	if err := x.readCheck(w, r); err != nil {
		h.fail(w, r, err)
		return
	}
	h.decide(w, r, x, checkForm)
}

// rateLimit serves /api/v1/rate_limit.
func (h *handler) rateLimit(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.notAllowed(w, r, "GET, HEAD")
		return
	}
	x := h.exchange()
	defer server.FreeCall(x.call)
	if err := h.opts.Mapping.read(r.URL.RawQuery, x); err != nil {
		h.fail(w, r, err)
		return
	}
	h.decide(w, r, x, rateLimitForm)
}

// decide asks the engine and writes its decision.
func (h *handler) decide(w http.ResponseWriter, r *http.Request, x *exchange, f form) {
	start := h.opts.Now()
	err := x.call.CheckText()
	if err == nil {
		err = h.opts.Engine.Check(r.Context(), x.call)
	}
	now := h.opts.Now()
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.opts.Recorder.Decided(server.EdgeHTTP, now.Sub(start))
	v := judge(x, &h.opts.Settings, now)
	for _, field := range v.fields() {
		w.Header().Set(field.Name, field.Value)
	}
	send(w, r, v.status, encode(v.body(f)))
}
