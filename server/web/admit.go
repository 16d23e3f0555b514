package web

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
)

// known returns the credentials of a request, and false once it has answered
// one that has no valid ones: its body is not read.
func (h *handler) known(w http.ResponseWriter, r *http.Request) (c auth.Credentials, ok bool) {
	authorizer := h.opts.Settings.Authorizer
	if authorizer == nil {
		return c, true
	}
	c = auth.FromHTTP(r)
	if err := authorizer.Known(c, h.opts.Now()); err != nil {
		refuse(w, r, err)
		return c, false
	}
	return c, true
}

// admit answers a call whose caller may not make it, and returns false then.
func (h *handler) admit(w http.ResponseWriter, r *http.Request, c auth.Credentials, n auth.Need) bool {
	if err := h.opts.Settings.Authorizer.Admit(c, n, h.opts.Now()); err != nil {
		refuse(w, r, err)
		return false
	}
	return true
}

// refuse answers a request whose caller may not make it. Unlike a denial of a
// limit, the answer has no field Ratelimit and no member allowed.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *auth.Refusal
	if !errors.As(err, &refusal) {
		writeProblem(w, r, asProblem(err))
		return
	}
	p := newProblem(http.StatusForbidden, codeForbidden, "%v", refusal)
	switch refusal.Reason.Kind() {
	case auth.Unauthenticated:
		p = newProblem(http.StatusUnauthorized, codeUnauthenticated, "%v", refusal)
		w.Header().Set("WWW-Authenticate", auth.Challenge)
	case auth.Exhausted:
		p = newProblem(http.StatusTooManyRequests, codeTokenRate, "%v", refusal)
		w.Header().Set("Retry-After", strconv.FormatUint(server.Seconds(refusal.RetryAfter()), 10))
	}
	writeProblem(w, r, p)
}
