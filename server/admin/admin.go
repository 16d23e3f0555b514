// Package admin is the listener for operators of a daemon: metrics, health, the
// rules in force, the state of the cluster, explanations of decisions,
// profiles, and commands. Each route has a role (roles.go). The unix socket of
// the daemon gives auth.Admin, a token or a certificate of an operator its own
// role. A connection without any of them may view, unless tokens or
// certificates are required. Requests of web pages and those that passed a
// proxy are refused.
package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"

	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/origin"
)

// Options are the sources of the pages. Any number of goroutines call the
// functions, one call for each request. They must not block, except for
// Explain. The pages only read the results.
type Options struct {
	// Metrics serves /metrics. Required.
	Metrics http.Handler
	// Ready returns nil while the daemon answers calls, else the reason why it
	// does not. Required.
	Ready func() error
	// Rules returns the rules in force as text, for /rlconfig. Required.
	Rules func() string
	// Members returns the live members of all regions, including the daemon
	// itself. Netcheck returns the connection to each peer. Both may return
	// them in any order. Nil for a daemon alone.
	Members  func() []api.Member
	Netcheck func() []api.PeerCheck
	// Budget answers /v1/budget. It fails only for an unknown rule. Nil for a
	// daemon alone.
	Budget func(api.BudgetQuery) (api.BudgetAnswer, error)
	// Explain answers /v1/explain and charges nothing. It may ask the owner of
	// a key and wait for it until ctx ends. It fails only for an invalid query.
	Explain func(ctx context.Context, q api.ExplainQuery) (api.ExplainAnswer, error)
	// Status answers /v1/status.
	Status func() api.StatusAnswer
	// Top answers /v1/top. It may return more keys than requested, in any
	// order.
	Top func(q api.TopQuery) api.TopAnswer
	// Strict answers /v1/strict. Nil for a daemon alone.
	Strict func() api.StrictAnswer
	// Cluster answers /v1/cluster, History /v1/cluster/history, and Backup
	// /v1/cluster/backup. InitCluster and RecoverCluster execute commands about
	// the control log; the last one waits for the disk until ctx ends.
	// ResumeRegion executes a statement about the region of the daemon.
	// ChangeCluster executes one about a region or a daemon, and waits for its
	// result until ctx ends; ClusterCommand answers /v1/cluster/command for its
	// id. Nil for a daemon alone.
	Cluster        func() api.ClusterAnswer
	History        func() api.HistoryAnswer
	Backup         func(at time.Time) (api.Backup, error)
	InitCluster    func(q api.InitRequest) (api.InitAnswer, error)
	RecoverCluster func(ctx context.Context, q api.RecoverRequest) (api.RecoverAnswer, error)
	ResumeRegion   func(q api.ResumeRequest) (api.ResumeAnswer, error)
	ChangeCluster  func(ctx context.Context, c api.ClusterCommandName, q api.ChangeRequest) (api.ChangeAnswer, error)
	ClusterCommand func(id string) (api.ChangeAnswer, error)
	// Limits answers /v1/limits, LimitsHistory /v1/limits/history, and
	// LimitsCommand /v1/limits/command for the id of a command. ChangeLimits
	// executes a command about limits; it waits for its result until ctx ends.
	// Nil for a daemon alone.
	Limits        func() api.LimitsAnswer
	LimitsHistory func() api.LimitsHistoryAnswer
	LimitsCommand func(id string) (api.LimitsCommandAnswer, error)
	ChangeLimits  func(ctx context.Context, c api.LimitsCommandName, q api.LimitsRequest) (api.LimitsCommandAnswer, error)
	// Checks returns the lines of /readyz?verbose. A daemon with a failed one
	// is not Ready. Nil for none.
	Checks func() []api.Check
	// Version is shown on the index page.
	Version string

	// Operators has the tokens of operators, nil for none.
	Operators *auth.Authorizer
	// Certificates is true where the listener verifies the certificates of
	// operators. With it, or with Operators, a connection over TCP without
	// credentials may not even view.
	Certificates bool
	// Socket is the path of the unix socket, "" for none, and Addr the bound
	// address of the listener over TCP.
	Socket string
	Addr   netip.AddrPort
	// Hosts are the names of this machine that a header Host may have, besides
	// addresses and localhost.
	Hosts []string
	// Pprof serves profiles.
	Pprof bool
	// Audit logs commands; nil logs nothing.
	Audit *Audit
}

// page is a path and its description on the index.
type page struct {
	path, about string
	handler     http.HandlerFunc
}

// New returns the handler of the admin listener:
//
//	/              the index
//	/metrics       Prometheus metrics
//	/healthz       200 while the process runs
//	/readyz        200 while it answers calls, else 503 with the reason;
//	               ?verbose adds a line for each check
//	/rlconfig      the rules in force
//	/members       an api.MembersAnswer
//	/netcheck      an api.NetcheckAnswer
//	/v1/budget     an api.BudgetAnswer; ?rule= selects one rule
//	/v1/explain    an api.ExplainAnswer, for ?domain=&d=key:value,key:value or
//	               an api.ExplainQuery by POST
//	/v1/status     an api.StatusAnswer
//	/v1/top        an api.TopAnswer; ?by=&n=&reveal=
//	/v1/strict     an api.StrictAnswer
//	/v1/cluster    an api.ClusterAnswer
//	/v1/cluster/history
//	               an api.HistoryAnswer
//	/v1/cluster/backup
//	               an api.Backup
//	/v1/cluster/command
//	               an api.ChangeAnswer; ?id=
//	/v1/limits     an api.LimitsAnswer
//	/v1/limits/history
//	               an api.LimitsHistoryAnswer
//	/v1/limits/command
//	               an api.LimitsCommandAnswer; ?id=
//	/debug/pprof/  profiles
//
// and by POST an api.InitRequest to /v1/cluster/init, an api.RecoverRequest to
// /v1/cluster/recover, an api.ResumeRequest to /v1/cluster/region-resume, an
// api.ChangeRequest to /v1/cluster/ and the name of another
// api.ClusterCommandName, and an api.LimitsRequest to /v1/limits/ and the name
// of an api.LimitsCommandName. It is safe for concurrent use.
func New(o Options) http.Handler { return newGate(&o) }

func newGate(o *Options) *gate {
	pages := []page{
		{"/metrics", "Prometheus metrics", o.Metrics.ServeHTTP},
		{"/healthz", "200 while the process runs", healthz},
		{"/readyz", "200 while it answers calls, else 503 with the reason; ?verbose for all checks", readyz(o)},
		{"/rlconfig", "the rules in force", func(w http.ResponseWriter, _ *http.Request) {
			text(w, http.StatusOK, o.Rules())
		}},
		{"/members", "the live daemons of all regions, as JSON", o.answer(members)},
		{"/netcheck", "the connection to each of them, as JSON", o.answer(netcheck)},
		{"/v1/budget", "overage budgets, as JSON; ?rule= for one", o.answer(budget)},
		{"/v1/explain", "the decision for a call and its causes, as JSON; ?domain=edge&d=key:value,key:value", o.answer(explain)},
		{"/v1/status", "the state of the daemon and its cluster, as JSON", o.answer(status)},
		{"/v1/top", "the hottest keys, as JSON; ?by=denied&n=20", o.answer(top)},
		{"/v1/strict", "the state of strict keys, as JSON", o.answer(strict)},
		{"/v1/cluster", "the state of the control log, as JSON", o.answer(cluster)},
		{"/v1/cluster/history", "the commands that changed the cluster, as JSON", o.answer(history)},
		{"/v1/limits", "the limits of the control log, as JSON", o.answer(limitsPage)},
		{"/v1/limits/history", "the versions of the rules, as JSON", o.answer(limitsHistory)},
	}
	if o.Pprof {
		pages = append(pages, page{"/debug/pprof/", "profiles", pprof.Index})
	}
	g := &gate{o: o, mux: http.NewServeMux()}
	for _, p := range pages {
		g.handle("GET "+p.path, p.handler)
	}
	for _, c := range api.ClusterCommands() {
		g.handle("POST "+clusterPath+string(c), o.answer(clusterCommand(c)))
	}
	g.handle("GET /v1/cluster/command", o.answer(clusterOutcome))
	g.handle("GET /v1/limits/command", o.answer(limitsOutcome))
	g.handle("GET /v1/cluster/backup", o.answer(backup))
	for _, c := range api.LimitsCommands() {
		g.handle("POST /v1/limits/"+string(c), o.answer(limitsCommand(c)))
	}
	g.handle("POST /v1/explain", o.answer(explain))
	index := indexText(o.Version, pages)
	g.handle("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, index) })
	if o.Pprof {
		g.handle("GET /debug/pprof/cmdline", pprof.Cmdline)
		g.handle("GET /debug/pprof/profile", pprof.Profile)
		g.handle("GET /debug/pprof/trace", pprof.Trace)
		// Symbol looks up the addresses of a body.
		g.handle("GET /debug/pprof/symbol", pprof.Symbol)
		g.handle("POST /debug/pprof/symbol", pprof.Symbol)
	}
	return g
}

// NewProbe returns the handler of the listener for probes and metrics alone:
// /healthz and /readyz of New, and metrics at a path. It serves everyone but
// web pages.
func NewProbe(o Options, path string, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, metrics.ServeHTTP)
	mux.HandleFunc("GET /healthz", healthz)
	mux.HandleFunc("GET /readyz", readyz(&o))
	return origin.NoPages(mux)
}

// NewServer returns a server for a handler of New, with timeouts against slow
// and silent clients. Profiles may run for up to two minutes. The caller sets
// ErrorLog, serves and shuts down.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      2*time.Minute + 10*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ConnContext:       ConnContext,
	}
}

func healthz(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok\n") }

func readyz(o *Options) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, body := http.StatusOK, "ready\n"
		if err := o.Ready(); err != nil {
			status, body = http.StatusServiceUnavailable, fmt.Sprintf("not ready: %v\n", err)
		}
		if r.URL.Query().Has("verbose") && o.Checks != nil {
			for _, c := range o.Checks() {
				body += fmt.Sprintf("%-9s%-9s%s\n", c.Name, c.State, c.Text)
			}
		}
		text(w, status, body)
	}
}

func indexText(version string, pages []page) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace("rld "+version) + "\n\n")
	for _, p := range pages {
		fmt.Fprintf(&b, "%-21s%s\n", p.path, p.about)
	}
	return b.String()
}
