// Package admin is the listener for those who run a daemon: metrics, health,
// the rules in force, the cluster, budgets, what decides a call, and profiles. Of
// keys of requests it shows hashes; their text it tells its own machine alone. But
// for the commands about rights and layouts, which it takes from there too, it
// changes nothing. It is still meant for loopback or a trusted network: a profile
// costs processor time.
package admin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"
)

// Options is what the admin edge shows. The functions are called once a
// request, by any number of goroutines, and but for Explain must not block. What
// they return is read only.
type Options struct {
	// Metrics serves /metrics. Required.
	Metrics http.Handler
	// Ready returns nil while the daemon answers calls and is not draining,
	// else an error that says why not. Required.
	Ready func() error
	// Rules returns the rules in force as text, for /rlconfig. Required.
	Rules func() string
	// Members returns the live members of all regions, the daemon itself
	// included, for /members; Netcheck returns what is known of the way to
	// each peer, for /netcheck. Each call's result is read only, in any
	// order. Nil for a daemon alone: the answers then say so.
	Members  func() []Member
	Netcheck func() []PeerCheck
	// Budget answers /v1/budget; its error is that of a rule which is not there.
	// Nil for a daemon alone.
	Budget func(BudgetQuery) (BudgetAnswer, error)
	// Command does what an operator says about rights, or returns why it cannot.
	// Nil for a daemon that holds none.
	Command func(c Command, name string) (CommandAnswer, error)
	// Explain answers /v1/explain, and charges nothing. It may ask the home of a key
	// and wait for it until ctx ends, and then tells what is known here. Its error
	// says what is wrong with the question.
	Explain func(ctx context.Context, q ExplainQuery) (ExplainAnswer, error)
	// Status answers /v1/status.
	Status func() StatusAnswer
	// Top answers /v1/top. It may return more keys than asked for, and in any order.
	Top func(q TopQuery) TopAnswer
	// Strict answers /v1/strict. Nil for a daemon alone.
	Strict func() StrictAnswer
	// Layout does what an operator says about the layout, or returns why it cannot.
	// Nil for a daemon without one.
	Layout func(c LayoutCommand, q LayoutRequest) (LayoutAnswer, error)
	// Version is shown on the index page.
	Version string
}

// page is a path and what the index says about it.
type page struct {
	path, about string
	handler     http.HandlerFunc
}

// New returns the admin edge:
//
//	/              what there is
//	/metrics       Prometheus metrics
//	/healthz       200 while the process lives
//	/readyz        200 while it takes calls, else 503 with the reason
//	/rlconfig      the rules in force
//	/members       the live daemons of all regions, a MembersAnswer as JSON
//	/netcheck      the way to each of them, a NetcheckAnswer as JSON
//	/v1/budget     overage budgets, a BudgetAnswer as JSON; ?rule= for one
//	/v1/explain    what a call would get and why, an ExplainAnswer as JSON, for
//	               ?domain=&d=key:value,key:value, or an ExplainQuery by POST
//	/v1/status     how the daemon is, a StatusAnswer as JSON
//	/v1/top        its hottest keys, a TopAnswer as JSON; ?by=&n=&reveal=
//	/v1/strict     how strict keys are, a StrictAnswer as JSON
//	/debug/pprof/  profiles
//
// and, by POST, a CommandRequest to /v1/rights/ and the name of a Command, and a
// LayoutRequest to /v1/strict/ and the name of a LayoutCommand.
//
// It is safe for concurrent use.
func New(o Options) http.Handler {
	pages := []page{
		{"/metrics", "Prometheus metrics", o.Metrics.ServeHTTP},
		{"/healthz", "200 while the process lives", healthz},
		{"/readyz", "200 while it takes calls, else 503 with the reason", readyz(o.Ready)},
		{"/rlconfig", "the rules in force", func(w http.ResponseWriter, _ *http.Request) {
			text(w, http.StatusOK, o.Rules())
		}},
		{"/members", "the live daemons of all regions, as JSON", members(o.Members)},
		{"/netcheck", "the way to each of them, as JSON", netcheck(o.Netcheck)},
		{"/v1/budget", "overage budgets, as JSON; ?rule= for one", budgetPage(o.Budget)},
		{"/v1/explain", "what a call would get and why, as JSON; ?domain=edge&d=key:value,key:value",
			explainPage(o.Explain, readExplainQuery)},
		{"/v1/status", "how the daemon is, as JSON", statusPage(o.Status)},
		{"/v1/top", "its hottest keys, as JSON; ?by=denied&n=20", topPage(o.Top)},
		{"/v1/strict", "how strict keys are, as JSON", strictPage(o.Strict)},
		{"/debug/pprof/", "profiles", pprof.Index},
	}
	mux := http.NewServeMux()
	for _, p := range pages {
		mux.HandleFunc("GET "+p.path, p.handler)
	}
	for _, c := range Commands() {
		mux.HandleFunc("POST /v1/rights/"+string(c), command(c, o.Command))
	}
	for _, c := range LayoutCommands() {
		mux.HandleFunc("POST /v1/strict/"+string(c), layout(c, o.Layout))
	}
	mux.HandleFunc("POST /v1/explain", explainPage(o.Explain, readExplainBody))
	index := indexText(o.Version, pages)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, index) })
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	// Symbol looks addresses up that come in a body.
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	return mux
}

// NewServer returns a server for New's handler that no slow or silent peer
// holds for nothing. Profiles may run for up to two minutes. The caller sets
// ErrorLog, serves and shuts down.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      2*time.Minute + 10*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
}

func healthz(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok\n") }

func readyz(ready func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			text(w, http.StatusServiceUnavailable, fmt.Sprintf("not ready: %v\n", err))
			return
		}
		text(w, http.StatusOK, "ready\n")
	}
}

func text(w http.ResponseWriter, status int, body string) {
	respond(w, status, "text/plain; charset=utf-8", body)
}

func respond(w http.ResponseWriter, status int, contentType, body string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// A caller that is gone has no use for the rest.
	_, _ = io.WriteString(w, body)
}

func indexText(version string, pages []page) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace("rld "+version) + "\n\n")
	for _, p := range pages {
		fmt.Fprintf(&b, "%-16s%s\n", p.path, p.about)
	}
	return b.String()
}
