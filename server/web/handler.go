package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/origin"
)

// The paths, as messages name them.
const (
	checkPath     = "/v1/check"
	rateLimitPath = "/api/v1/rate_limit"
	jsonPath      = "/json"
	healthPath    = "/healthcheck"
)

// handler serves all paths. It is safe for concurrent use.
type handler struct {
	opts     Options
	bodies   bodyReader
	gateways map[string]*mapped // by name
}

// New returns the HTTP edge. It is safe for concurrent use.
func New(o Options) http.Handler {
	o = o.withDefaults()
	return &handler{opts: o, bodies: newBodyReader(), gateways: newMapped(&o)}
}

// ServeHTTP routes by the exact path: no redirects and no cleaning, since the
// callers are programs.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, forwardAuthPath); ok {
		h.forwardAuth(w, r, name)
		return
	}
	// A gateway copies the headers of the browser that it asks for.
	if err := origin.CrossSite(r); err != nil && !origin.Gateway(r) {
		h.fail(w, r, newProblem(http.StatusForbidden, codeForbidden, "%v", err))
		return
	}
	switch {
	case r.URL.Path == checkPath:
		read := func(x *exchange) error { return x.readCheck(w, r, h.bodies) }
		h.ask(w, r, checkForm, read, http.MethodGet, http.MethodHead, http.MethodPost)
	case r.URL.Path == rateLimitPath:
		read := func(x *exchange) error { return h.opts.Mapping.read(r.URL.RawQuery, x) }
		h.ask(w, r, rateLimitForm, read, http.MethodGet, http.MethodHead)
	case r.URL.Path == jsonPath && h.opts.RLS != nil:
		h.envoy(w, r)
	case r.URL.Path == healthPath:
		h.health(w, r)
	default:
		h.notFound(w, r)
	}
}

// ask serves a path of questions: read makes a call of a request that uses one
// of the allowed methods.
func (h *handler) ask(
	w http.ResponseWriter, r *http.Request, f form, read func(*exchange) error, allowed ...string,
) {
	if !slices.Contains(allowed, r.Method) {
		h.notAllowed(w, r, strings.Join(allowed, ", "))
		return
	}
	x := newExchange(server.NewCall(), &h.opts.Settings)
	defer server.FreeCall(x.call)
	caller, ok := h.known(w, r)
	if !ok {
		return
	}
	if err := read(x); err != nil {
		h.fail(w, r, err)
		return
	}
	need := auth.Need{Domain: x.call.Domain}
	if x.call.Peek {
		need.Verb = auth.Read
	}
	if h.admit(w, r, caller, need) {
		h.decide(w, r, x, f)
	}
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
	v.setFields(w.Header())
	send(w, r, v.status, encode(v.body(f)))
}
