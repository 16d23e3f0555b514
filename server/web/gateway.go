package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/georld/rld/gateway"
	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/origin"
)

// forwardAuthPath begins the path of each mapping. Its name follows, and with
// gateway.TargetPath the path of the request.
const forwardAuthPath = "/v1/forward-auth/"

// mapped is a mapping with its name and the settings of its answers.
type mapped struct {
	*gateway.Mapping
	name string
	// settings are in shadow mode where the mapping only logs.
	settings server.Settings
}

// newMapped compiles the mappings of o, which are valid.
func newMapped(o *Options) map[string]*mapped {
	out := make(map[string]*mapped, len(o.Gateways))
	for name, s := range o.Gateways {
		m, err := gateway.Compile(s)
		if err != nil {
			panic(fmt.Sprintf("mapping %s: %v", name, err))
		}
		out[name] = &mapped{m, name, o.Settings}
		if m.Action == gateway.ActionLog {
			out[name].settings.Shadow = true
		}
	}
	return out
}

// forwardAuth answers a gateway that asks about a request of a client. Most
// gateways copy the headers of the client, and some fail open on any status
// that is no denial. So every faulty request is answered as a denial, and
// FailureStatus is for the failures of rld alone.
func (h *handler) forwardAuth(w http.ResponseWriter, r *http.Request, name string) {
	m, line := h.mapping(r, name)
	if m == nil {
		h.notFound(w, r)
		return
	}
	q := gateway.Request{Header: r.Header, Host: r.Host, Line: line}
	if err := origin.CrossSite(r); err != nil && !q.Described() {
		h.faulty(w, r, m, gateway.CrossSite, newProblem(m.Status(), codeForbidden, "%v", err))
		return
	}
	if err := h.mayCall(r, m.Domain()); err != nil {
		h.faulty(w, r, m, gateway.Unauthorized, newProblem(m.Status(), codeForbidden, "%v", err))
		return
	}
	c, err := m.Read(&q)
	if err != nil {
		h.faultyRead(w, r, m, err)
		return
	}
	if c.Exempt {
		pass(w)
		return
	}
	if len(c.Descriptors) == 0 {
		h.unmatched(w, r, m)
		return
	}
	x := newExchange(server.NewCall(), &m.settings)
	defer server.FreeCall(x.call)
	x.denyStatus, x.failureStatus = m.Status(), m.FailureStatus
	x.call.Domain, x.call.Descriptors = c.Domain, append(x.call.Descriptors, c.Descriptors...)
	h.decideMapped(w, r, m, x)
}

// mapping returns the mapping of a question, nil for none, and what its request
// line states about the request. Only a mapping with gateway.TargetPath may
// have something behind its name. Nothing is decoded before the name is found,
// so an encoded slash or letter finds no other mapping.
func (h *handler) mapping(r *http.Request, name string) (*mapped, *gateway.Line) {
	if m := h.gateways[name]; m != nil && m.Target != gateway.TargetPath {
		return m, nil
	}
	rest, ok := strings.CutPrefix(r.RequestURI, forwardAuthPath)
	if !ok {
		return nil, nil
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	m := h.gateways[rest[:end]]
	if m == nil || m.Target != gateway.TargetPath {
		return nil, nil
	}
	return m, &gateway.Line{Method: r.Method, Target: rest[end:]}
}

// mayCall returns the refusal of a gateway that may not ask about a domain.
func (h *handler) mayCall(r *http.Request, domain string) error {
	a := h.opts.Settings.Authorizer
	if a == nil {
		return nil
	}
	now, caller := h.opts.Now(), auth.FromHTTP(r)
	if err := a.Known(caller, now); err != nil {
		return err
	}
	return a.Admit(caller, auth.Need{Domain: domain}, now)
}

// decideMapped asks the engine and writes its decision.
func (h *handler) decideMapped(w http.ResponseWriter, r *http.Request, m *mapped, x *exchange) {
	start := h.opts.Now()
	err := h.opts.Engine.Check(r.Context(), x.call)
	now := h.opts.Now()
	var input *node.InputError
	switch {
	case errors.As(err, &input):
		h.faulty(w, r, m, gateway.BadText, newProblem(m.Status(), codeInvalid, "%v", input))
		return
	case err != nil:
		p := asProblem(err)
		p.Status = m.FailureStatus
		p.Title = http.StatusText(p.Status)
		w.Header().Set("Retry-After", "1")
		m.answer(w, r, p)
		return
	}
	h.opts.Recorder.Decided(server.EdgeHTTP, now.Sub(start))
	if x.unmatched() && m.OnNoMatch == gateway.NoMatchDeny {
		h.unmatched(w, r, m)
		return
	}
	v := judge(x, &m.settings, now)
	v.setFields(w.Header())
	if !x.call.Decision.Allowed {
		m.denial(w)
	}
	if v.allowed {
		delete(w.Header(), "Content-Type")
		pass(w)
		return
	}
	send(w, r, v.status, encode(v.body(rateLimitForm)))
}

// pass answers that a request may pass, without a body: gateways discard it,
// and nginx closes a connection whose body it has not read.
func pass(w http.ResponseWriter) {
	w.Header()["Cache-Control"] = noStore
	w.WriteHeader(http.StatusOK)
}

// noStore is a header of pass. It is read-only.
var noStore = []string{"no-store"}

// unmatched reports whether no descriptor of a decided call has a rule. A rule
// without a limit is one: it admits its requests on purpose.
func (x *exchange) unmatched() bool {
	for i := range x.call.Statuses {
		if s := &x.call.Statuses[i]; s.Rule != nil || s.Limit != nil {
			return false
		}
	}
	return true
}

// unmatched answers a request that no rule matches.
func (h *handler) unmatched(w http.ResponseWriter, r *http.Request, m *mapped) {
	if m.OnNoMatch == gateway.NoMatchDeny {
		h.faulty(w, r, m, gateway.NoMatchDenied, newProblem(m.Status(), codeNoMatch, "no rule matches the request"))
		return
	}
	pass(w)
}

// faultyRead answers a request that the mapping cannot read.
func (h *handler) faultyRead(w http.ResponseWriter, r *http.Request, m *mapped, err error) {
	reason := gateway.BadText
	if fault, ok := errors.AsType[*gateway.Fault](err); ok {
		reason = fault.Reason
	}
	h.faulty(w, r, m, reason, newProblem(m.Status(), codeInvalid, "%v", err))
}

// faulty counts a request that must not pass, and denies it. It has no
// Retry-After, since waiting does not help.
func (h *handler) faulty(w http.ResponseWriter, r *http.Request, m *mapped, reason gateway.Reason, p *problem) {
	h.opts.Faulty(m.name, reason)
	m.denial(w)
	m.answer(w, r, p)
}

// answer writes a problem, or 200 in shadow mode.
func (m *mapped) answer(w http.ResponseWriter, r *http.Request, p *problem) {
	if m.settings.Shadow {
		w.Header().Del("Retry-After")
		pass(w)
		return
	}
	reply(w, r, p.Status, problemType, encode(answerBody{problem: p}))
}

// denial sets the headers of a denial, or of what would be one.
func (m *mapped) denial(w http.ResponseWriter) {
	switch {
	case m.settings.Shadow:
		w.Header().Set("X-Ratelimit-Status", "would_deny")
	case m.Action != gateway.ActionChallenge:
	case m.ChallengeURL != "":
		w.Header().Set("Location", m.ChallengeURL)
	default:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("RateLimit realm=%q", cmp.Or(m.name, "rld")))
	}
}
