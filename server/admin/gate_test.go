package admin_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/server/auth"
)

// operators has one token for each role, named as the role.
func operators(t *testing.T) *auth.Authorizer {
	t.Helper()
	var tokens auth.Tokens
	for r := auth.View; r <= auth.Admin; r++ {
		tokens = append(tokens, auth.Token{Name: r.String(), SHA256: auth.Hash("secret-" + r.String()), Role: r})
	}
	return auth.NewAuthorizer(tokens, nil)
}

// Routes of each role.
const (
	viewRoute    = "GET /v1/status"
	operateRoute = "POST /v1/limits/unset"
	revealRoute  = "GET /v1/top?reveal=true"
	adminRoute   = "POST /v1/cluster/region-remove"
)

func requestTo(route string) *http.Request {
	method, path, _ := strings.Cut(route, " ")
	r := httptest.NewRequest(method, path, strings.NewReader(`{}`))
	r.Header.Set("Content-Type", "application/json")
	overTCP(r, "127.0.0.1:5000")
	return r
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func certificate(uris ...string) func(*http.Request) {
	return func(r *http.Request) {
		leaf := &x509.Certificate{}
		for _, text := range uris {
			u, _ := url.Parse(text)
			leaf.URIs = append(leaf.URIs, u)
		}
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}
	}
}

// TestRoles asks routes of each role with all kinds of credentials. A request
// that is admitted gets past the gate, to whatever the page answers.
func TestRoles(t *testing.T) {
	none := func(*http.Request) {}
	for _, tt := range []struct {
		name     string
		required bool // of connections over TCP
		as       func(*http.Request)
		view     int // the refusals, 0 for admitted
		operate  int
		admin    int
	}{
		{"socket", false, onSocket, 0, 0, 0},
		{"socket with required credentials", true, onSocket, 0, 0, 0},
		{"nothing", false, none, 0, 401, 401},
		{"nothing with required credentials", true, none, 401, 401, 401},
		{"token for view", true, bearer("secret-view"), 0, 403, 403},
		{"token for operate", true, bearer("secret-operate"), 0, 0, 403},
		{"token for admin", true, bearer("secret-admin"), 0, 0, 0},
		{"unknown token", true, bearer("secret"), 401, 401, 401},
		{"token where there are none", false, bearer("secret-admin"), 0, 401, 401},
		{"certificate for view", true, certificate("spiffe://rld-operator/view/ann"), 0, 403, 403},
		{"certificate for operate", true, certificate("spiffe://rld-operator/operate/ann"), 0, 0, 403},
		{"certificate for admin", true, certificate("spiffe://rld-operator/admin/ann"), 0, 0, 0},
		{"certificate of a daemon", true, certificate("spiffe://rld/us/us-0"), 403, 403, 403},
		{"certificate with two roles", true, certificate("spiffe://rld-operator/admin/ann", "spiffe://rld-operator/view/ann"), 403, 403, 403},
		{"certificate with another role", true, certificate("spiffe://rld-operator/root/ann"), 403, 403, 403},
		{"certificate without a name", true, certificate("spiffe://rld-operator/admin/"), 403, 403, 403},
		{"certificate with a query", true, certificate("spiffe://rld-operator/admin/ann?x"), 403, 403, 403},
		{"token over that of the certificate", true, func(r *http.Request) {
			certificate("spiffe://rld-operator/view/ann")(r)
			bearer("secret-operate")(r)
		}, 0, 0, 403},
	} {
		o := options()
		if tt.required {
			o.Operators, o.Certificates = operators(t), true
		}
		for _, c := range []struct {
			route, role string
			refused     int
		}{
			{viewRoute, "view", tt.view},
			{operateRoute, "operate", tt.operate},
			{revealRoute, "operate", tt.operate},
			{adminRoute, "admin", tt.admin},
		} {
			r := requestTo(c.route)
			tt.as(r)
			w := httptest.NewRecorder()
			admin.New(o).ServeHTTP(w, r)
			switch refused := w.Code == 401 || w.Code == 403; {
			case refused != (c.refused != 0) || refused && w.Code != c.refused:
				t.Errorf("%s: %s: got %d %s, want %d", tt.name, c.route, w.Code, w.Body, c.refused)
			case w.Code == 401 && (w.Header().Get("WWW-Authenticate") == "" || !strings.Contains(w.Body.String(), "token")):
				t.Errorf("%s: %s: no way to do it in %s", tt.name, c.route, w.Body)
			case w.Code == 403 && !strings.Contains(w.Body.String(), "needs the role "+c.role):
				t.Errorf("%s: %s: %s does not name the role", tt.name, c.route, w.Body)
			}
		}
	}
}

// TestSocketIsNamedHere: only requests from the machine of the daemon learn of
// its socket.
func TestSocketIsNamedHere(t *testing.T) {
	o := options()
	o.Socket = "/run/rld/admin.sock"
	for from, want := range map[string]string{"127.0.0.1:5000": o.Socket, "10.0.0.9:5000": ""} {
		r := requestTo(adminRoute)
		overTCP(r, from)
		w := httptest.NewRecorder()
		admin.New(o).ServeHTTP(w, r)
		if got := w.Header().Get(api.SocketHeader); got != want {
			t.Errorf("%s: got %q, want %q", from, got, want)
		}
	}
}

// TestPages refuses what web pages and proxies send, also reads.
func TestPagesAndProxies(t *testing.T) {
	for _, tt := range []struct {
		name, header, value string
		status              int
	}{
		{"program", "User-Agent", "curl", 200},
		{"address bar", "Sec-Fetch-Site", "none", 200},
		{"own page", "Sec-Fetch-Site", "same-origin", 200},
		{"page of another port", "Sec-Fetch-Site", "same-site", 403},
		{"page of another site", "Sec-Fetch-Site", "cross-site", 403},
		{"page", "Origin", "http://evil.example", 403},
		{"file", "Origin", "null", 403},
		{"own origin", "Origin", "http://127.0.0.1:6070", 200},
		{"another port", "Origin", "http://127.0.0.1:8080", 403},
		{"no URL", "Origin", "%", 403},
		{"proxy", "X-Forwarded-For", "10.0.0.9", 403},
		{"standard proxy", "Forwarded", "for=10.0.0.9", 403},
		{"other proxy", "Via", "1.1 proxy", 403},
		{"rebound name", "Host", "evil.example:6070", 403},
		{"rebound name without a port", "Host", "evil.example", 403},
		{"address", "Host", "[::1]:6070", 200},
		{"localhost", "Host", "LocalHost", 200},
		{"own name", "Host", "gateway-7:6070", 200},
		{"no name", "Host", "", 403},
	} {
		o := options()
		o.Hosts = []string{"gateway-7", ""}
		r := requestTo(viewRoute)
		if tt.header == "Host" {
			r.Host = tt.value
		} else {
			r.Header.Set(tt.header, tt.value)
		}
		w := httptest.NewRecorder()
		admin.New(o).ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s: got %d %s, want %d", tt.name, w.Code, w.Body, tt.status)
		}
	}
	r := requestTo(viewRoute) // a page cannot have the token
	r.Host = "rld.example"
	bearer("secret-view")(r)
	o, w := options(), httptest.NewRecorder()
	o.Operators = operators(t)
	if admin.New(o).ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("a token under another name: got %d %s", w.Code, w.Body)
	}
}

// TestProbe serves three pages to everyone but pages of other sites.
func TestProbe(t *testing.T) {
	o := options()
	h := admin.NewProbe(o, "/stats/prometheus", o.Metrics)
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/stats/prometheus": 200, "/metrics": 404,
		"/": 404, "/v1/status": 404, "/rlconfig": 404, "/v1/cluster/init": 404, "/debug/pprof/": 404,
	} {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "rld-0.rld.svc:9090"
		r.Header.Set("X-Forwarded-For", "10.0.0.9")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
	}
	r := httptest.NewRequest("GET", "/stats/prometheus", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != 403 {
		t.Errorf("a page gets %d", w.Code)
	}
}

// TestAudit: each command is one line with who, from where, what and why, and
// so is each kind of refusal. Views are not logged.
func TestAudit(t *testing.T) {
	var log bytes.Buffer
	o := options()
	o.Operators, o.Audit = operators(t), admin.NewAudit(slog.New(slog.NewTextHandler(&log, nil)))
	o.ChangeCluster = nil // a daemon alone
	h := admin.New(o)
	send := func(route, body, token string) {
		method, path, _ := strings.Cut(route, " ")
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		overTCP(r, "127.0.0.1:5000")
		if token != "" {
			bearer(token)(r)
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	for _, tt := range []struct {
		name, route, body, token string
		want                     []string // parts of the line, none for no line
	}{
		{"view", viewRoute, "", "secret-view", nil},
		{
			"failed", adminRoute, `{"name": "eu-west", "reason": "flood\nin the cellar"}`, "secret-admin",
			[]string{
				`audit.who="token admin"`, `audit.from=127.0.0.1:5000`, `audit.role=admin`, `audit.what="POST /v1/cluster/region-remove"`,
				`audit.about=eu-west`, `audit.result=failed`, `audit.why="flood\nin the cellar"`, `audit.status=409`, "level=INFO",
			},
		},
		{"reveal", revealRoute, "", "secret-operate", []string{`audit.who="token operate"`, `audit.what="GET /v1/top?reveal=true"`, `audit.result=done`}},
		{"role", adminRoute, `{}`, "secret-view", []string{`audit.who="token view"`, `audit.result=refused`, `audit.reason=role`, "level=WARN"}},
		{"role again", adminRoute, `{}`, "secret-view", nil},
		{"nothing", adminRoute, `{}`, "", []string{`audit.who=nobody`, `audit.reason=no_credentials`, `audit.status=401`}},
		{"wrong", adminRoute, `{}`, "guess", []string{`audit.who=nobody`, `audit.reason=unknown_token`}},
		{"long", adminRoute, `{"name": "` + strings.Repeat("x", 9_000) + `"}`, "secret-admin", []string{strings.Repeat("x", 200) + "... "}},
	} {
		log.Reset()
		send(tt.route, tt.body, tt.token)
		if lines := strings.Count(log.String(), "\n"); lines != min(1, len(tt.want)) {
			t.Errorf("%s: %d lines:\n%s", tt.name, lines, &log)
		}
		for _, part := range tt.want {
			if !strings.Contains(log.String(), part) {
				t.Errorf("%s: no %s in\n%s", tt.name, part, &log)
			}
		}
		if strings.Contains(log.String(), "secret-") || strings.Contains(log.String(), "guess") {
			t.Errorf("%s: the log has a token:\n%s", tt.name, &log)
		}
	}
	counts := make(map[string]uint64)
	o.Audit.Refused(func(reason string, n uint64) { counts[reason] = n })
	if counts["role"] != 2 || counts["no_credentials"] != 1 || counts["unknown_token"] != 1 {
		t.Errorf("refused %v", counts)
	}
}
