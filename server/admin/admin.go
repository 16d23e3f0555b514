// Package admin is the listener for those who run a daemon: metrics, health,
// the rules in force, the cluster, budgets and profiles. It holds no keys of
// requests and, but for the commands about rights, which it takes from its own
// machine alone, changes nothing. It is still meant for loopback or a trusted
// network: a profile costs processor time.
package admin

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"
)

// Options is what the admin edge shows. The functions are called once a
// request, by any number of goroutines, and must not block.
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
//	/debug/pprof/  profiles
//
// and, by POST, a CommandRequest to /v1/rights/ and the name of a Command.
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
		{"/debug/pprof/", "profiles", pprof.Index},
	}
	mux := http.NewServeMux()
	for _, p := range pages {
		mux.HandleFunc("GET "+p.path, p.handler)
	}
	for _, c := range Commands() {
		mux.HandleFunc("POST /v1/rights/"+string(c), command(c, o.Command))
	}
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
