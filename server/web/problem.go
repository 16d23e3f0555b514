package web

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
)

// The machine-readable causes, the member error of a problem.
const (
	codeInvalid     = "invalid_request"
	codeTooLarge    = "too_large"
	codeMediaType   = "unsupported_media_type"
	codeMethod      = "method_not_allowed"
	codeNotFound    = "not_found"
	codeNotReady    = "not_ready"
	codeUnavailable = "unavailable"
	codeExceeded    = "rate_limit_exceeded"
	codeNoMatch     = "no_match"

	codeUnauthenticated = "unauthenticated"
	codeForbidden       = "forbidden"
	codeTokenRate       = "token_rate_exceeded"
)

// maxQuote bounds how much of a request a message repeats, in bytes.
const maxQuote = 64

// problem is the body of an answer without a decision, and the head of a
// refusal. The readers of requests return it as an error.
type problem struct {
	Type    string   `json:"type"`
	Title   string   `json:"title"`
	Status  int      `json:"status"`
	Code    string   `json:"error"`
	Message string   `json:"message"`
	Paths   []string `json:"paths,omitempty"` // those there are, where one is not
}

func newProblem(status int, code, format string, args ...any) *problem {
	return &problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code,
		Message: fmt.Sprintf(format, args...),
	}
}

func (p *problem) Error() string { return p.Message }

// badRequest returns a *problem with status 400.
func badRequest(format string, args ...any) error {
	return newProblem(http.StatusBadRequest, codeInvalid, format, args...)
}

// quote repeats a piece of a request in a message: quoted, printable and cut.
func quote(s string) string {
	if len(s) > maxQuote {
		return strconv.QuoteToASCII(s[:maxQuote]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

// asProblem maps an error to a problem: a *problem is itself, a
// *node.InputError is a fault of the request, and any other is a failure of
// rld.
func asProblem(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var input *node.InputError
	if errors.As(err, &input) {
		return newProblem(http.StatusBadRequest, codeInvalid, "%v", input)
	}
	return newProblem(http.StatusServiceUnavailable, codeUnavailable, "rld cannot decide: %v", err)
}

// fail answers a question that got no decision.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := asProblem(err)
	if p.Status < http.StatusInternalServerError {
		h.opts.Recorder.Malformed(server.EdgeHTTP)
	}
	writeProblem(w, r, p)
}

func (h *handler) notAllowed(w http.ResponseWriter, r *http.Request, allow string) {
	w.Header().Set("Allow", allow)
	writeProblem(w, r, newProblem(http.StatusMethodNotAllowed, codeMethod,
		"%s takes %s, not %s", r.URL.Path, allow, quote(r.Method)))
}

func (h *handler) notFound(w http.ResponseWriter, r *http.Request) {
	p := newProblem(http.StatusNotFound, codeNotFound, "no such path: %s", quote(r.URL.Path))
	p.Paths = []string{checkPath, rateLimitPath, jsonPath, healthPath}
	if h.opts.RLS == nil {
		p.Paths = []string{checkPath, rateLimitPath, healthPath}
	}
	if len(h.gateways) > 0 {
		p.Paths = append(p.Paths, forwardAuthPath+"NAME") // the caller may have no token
	}
	writeProblem(w, r, p)
}

func writeProblem(w http.ResponseWriter, r *http.Request, p *problem) {
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	reply(w, r, p.Status, problemType, encode(p))
}
