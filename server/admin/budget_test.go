package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// budgetOptions answers with one rule and keeps the query.
func budgetOptions(asked *api.BudgetQuery) admin.Options {
	o := options()
	o.Budget = func(q api.BudgetQuery) (api.BudgetAnswer, error) {
		*asked = q
		if q.Rule == "lgoin" {
			return api.BudgetAnswer{}, &api.UnknownRuleError{Rule: q.Rule, Closest: "login"}
		}
		return api.BudgetAnswer{Daemon: "us-0", Rules: []api.RuleBudget{{Name: "login", Bound: new(0.02), Bounded: true}}}, nil
	}
	return o
}

func TestBudgetPage(t *testing.T) {
	var asked api.BudgetQuery
	h := admin.New(budgetOptions(&asked))
	for _, tc := range []struct {
		path   string
		status int
		body   string
		want   api.BudgetQuery
	}{
		{"/v1/budget", 200, `"overage_bound_ratio": 0.02`, api.BudgetQuery{Target: -1}},
		{"/v1/budget?rule=login", 200, `"overage_predicted_ratio": null`, api.BudgetQuery{Rule: "login", Target: -1}},
		{"/v1/budget?rule=login&false_denials=0.1%25", 200, `"us-0"`, api.BudgetQuery{Rule: "login", Target: 0.001}},
		{"/v1/budget?rule=lgoin", 404, `(did you mean \"login\"?)`, api.BudgetQuery{Rule: "lgoin", Target: -1}},
		{"/v1/budget?rule=login&false_denials=2", 400, `\"2\" is not a percentage from 0% to 100%: want one such as 0.1%`, api.BudgetQuery{}},
		{"/v1/budget?rule=login&false_denials=NaN%25", 400, "is not a percentage", api.BudgetQuery{}},
		{"/v1/budget?false_denials=2%25", 400, "add rule=", api.BudgetQuery{}},
		{"/v1/budget?rule=" + strings.Repeat("x", 20_000), 400, "at most 4096", api.BudgetQuery{}},
	} {
		asked = api.BudgetQuery{}
		w := get(h, "GET", tc.path)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.body) {
			t.Errorf("%s: got %d %s, want %d with %s", tc.path, w.Code, w.Body, tc.status, tc.body)
		}
		if asked != tc.want {
			t.Errorf("%s asks for %+v, want %+v", tc.path, asked, tc.want)
		}
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("%s is %q", tc.path, got)
		}
	}
	w := get(admin.New(options()), "GET", "/v1/budget")
	var alone api.BudgetAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &alone); err != nil || !alone.Alone || alone.Rules == nil {
		t.Errorf("a daemon alone answers %s: %v", w.Body, err)
	}
}

// TestRemoteCommandsAreRefused: without credentials only users of the unix
// socket may send commands, no pages, and no proxies.
func TestRemoteCommandsAreRefused(t *testing.T) {
	const body = `{"name": "eu-west"}`
	good := func() *http.Request {
		r := httptest.NewRequest("POST", "/v1/cluster/region-remove", strings.NewReader(body))
		onSocket(r)
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	with := func(change func(*http.Request)) *http.Request {
		r := good()
		change(r)
		return r
	}
	text := func(s string) *http.Request {
		r := httptest.NewRequest("POST", "/v1/cluster/daemon-remove", strings.NewReader(s))
		onSocket(r)
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		return r
	}
	for _, tc := range []struct {
		name   string
		r      *http.Request
		status int
		says   string
		done   string
	}{
		{"good", good(), 200, `"text": "soon"`, "region-remove eu-west"},
		{"another", text(body), 200, `"id": "e7"`, "daemon-remove eu-west"},
		{"over TCP", with(func(r *http.Request) { overTCP(r, "127.0.0.1:5000") }), 401, "needs the role admin", ""},
		{"from afar", with(func(r *http.Request) { overTCP(r, "10.0.0.9:5000") }), 401, "needs the role admin", ""},
		{"through a proxy", with(func(r *http.Request) { r.Header.Set("X-Forwarded-For", "10.0.0.9") }), 403, "passed a proxy", ""},
		{"through another proxy", with(func(r *http.Request) { r.Header.Set("Forwarded", "for=10.0.0.9") }), 403, "passed a proxy", ""},
		{"for another daemon", with(func(r *http.Request) { r.Header.Set(api.AddrHeader, "127.0.0.1:6071") }), 421, "127.0.0.1:6071", ""},
		{"for this daemon", with(func(r *http.Request) { r.Header.Set(api.AddrHeader, "127.0.0.1:6070") }), 200, "soon", "region-remove eu-west"},
		{"from a page of another site", with(func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }), 403, "another site", ""},
		{"under another host name", with(func(r *http.Request) { r.Host = "evil.example:6070" }), 403, "evil.example", ""},
		{"from a page", with(func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }), 403, "another site", ""},
		{"from a browser", with(func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }), 403, "browsers", ""},
		{"of a form", with(func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }), 400, "application/json", ""},
		{"by GET", with(func(r *http.Request) { r.Method = "GET" }), 405, "", ""},
		{"of another kind", with(func(r *http.Request) { r.URL.Path = "/v1/cluster/world-remove" }), 404, "", ""},
		{"empty", text(""), 400, `want {\"name\": \"...\"`, ""},
		{"without a name", text(`{"name": ""}`), 400, "the name is empty", ""},
		{"with more than a name", text(`{"name": "a", "now": true}`), 400, "unknown field", ""},
		{"with trailing data", text(body + body), 400, "nothing after it", ""},
		{"too long", text(`{"name": "` + strings.Repeat("x", 20_000) + `"}`), 400, "too large", ""},
		{"refused", text(`{"name": "us-0"}`), 409, "it lives", ""},
	} {
		done := ""
		o := options()
		o.Addr = netip.MustParseAddrPort("127.0.0.1:6070")
		o.ChangeCluster = func(_ context.Context, c api.ClusterCommandName, q api.ChangeRequest) (api.ChangeAnswer, error) {
			if q.Name == "us-0" {
				return api.ChangeAnswer{}, errors.New("it lives")
			}
			done = string(c) + " " + q.Name
			return api.ChangeAnswer{ID: "e7", Text: "soon"}, nil
		}
		w := httptest.NewRecorder()
		admin.New(o).ServeHTTP(w, tc.r)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) || done != tc.done {
			t.Errorf("%s: got %d %s and did %q, want %d with %q and %q", tc.name, w.Code, w.Body, done, tc.status, tc.says, tc.done)
		}
	}
	w := httptest.NewRecorder()
	admin.New(options()).ServeHTTP(w, good())
	if w.Code != 409 || !strings.Contains(w.Body.String(), "is alone") {
		t.Errorf("a daemon alone: got %d %s", w.Code, w.Body)
	}
}
