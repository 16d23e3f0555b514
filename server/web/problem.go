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
)

// maxQuote bounds how much of a request a message repeats, in bytes.
const maxQuote = 64

// problem is an answer without a decision. The readers of requests return it as
// an error.
type problem struct {
	status  int
	code    string
	message string
}

func (p *problem) Error() string { return p.message }

// badRequest returns a *problem with status 400.
func badRequest(format string, args ...any) error {
	return &problem{http.StatusBadRequest, codeInvalid, fmt.Sprintf(format, args...)}
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
		return &problem{http.StatusBadRequest, codeInvalid, input.Error()}
	}
	return &problem{http.StatusServiceUnavailable, codeUnavailable, "rld cannot decide: " + err.Error()}
}

// fail answers a question that got no decision.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := asProblem(err)
	if p.status < http.StatusInternalServerError {
		h.opts.Recorder.Malformed(server.EdgeHTTP)
	}
	writeProblem(w, r, p)
}

func (h *handler) notAllowed(w http.ResponseWriter, r *http.Request, allow string) {
	w.Header().Set("Allow", allow)
	writeProblem(w, r, &problem{
		http.StatusMethodNotAllowed, codeMethod, r.URL.Path + " takes " + allow + ", not " + quote(r.Method),
	})
}

func (h *handler) notFound(w http.ResponseWriter, r *http.Request) {
	p := &problem{http.StatusNotFound, codeNotFound, "no such path: " + quote(r.URL.Path)}
	j := p.open()
	j.openList("paths")
	j.item(checkPath)
	j.item(rateLimitPath)
	if h.opts.RLS != nil {
		j.item(jsonPath)
	}
	j.item(healthPath)
	j.closeList()
	p.send(w, r, &j)
}

func writeProblem(w http.ResponseWriter, r *http.Request, p *problem) {
	j := p.open()
	p.send(w, r, &j)
}

func (p *problem) open() document {
	var j document
	j.open()
	j.text("type", "about:blank")
	j.text("title", http.StatusText(p.status))
	j.uint("status", uint64(p.status))
	j.text("error", p.code)
	j.text("message", p.message)
	return j
}

func (p *problem) send(w http.ResponseWriter, r *http.Request, j *document) {
	j.close()
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", problemType)
	if p.status == http.StatusServiceUnavailable {
		header.Set("Retry-After", "1")
	}
	send(w, r, p.status, append(j.b, '\n'))
}
