package admin_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

func question(entries ...string) api.ExplainQuery {
	q := api.ExplainQuery{Domain: "edge", Hits: 1, Descriptors: []api.ExplainDescriptor{{}}}
	for i := 0; i < len(entries); i += 2 {
		d := &q.Descriptors[0]
		d.Entries = append(d.Entries, api.ExplainEntry{Key: entries[i], Value: entries[i+1]})
	}
	return q
}

// post sends a body as JSON from this machine.
func post(h http.Handler, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	onSocket(r)
	r.Header.Set("Content-Type", "application/json")
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// overTCP makes a request one over TCP.
func overTCP(r *http.Request, from string) {
	at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:6070"))
	*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at)))
	r.RemoteAddr, r.Host = from, "127.0.0.1:6070"
}

func TestExplainQueries(t *testing.T) {
	var asked *api.ExplainQuery
	o := options()
	o.Explain = func(_ context.Context, q api.ExplainQuery) (api.ExplainAnswer, error) {
		asked = &q
		if q.Domain == "" {
			return api.ExplainAnswer{}, errors.New("rate limit domain must not be empty")
		}
		return api.ExplainAnswer{Domain: q.Domain, Descriptors: make([]api.Explained, len(q.Descriptors))}, nil
	}
	h := admin.New(o)
	two := question("tier", "free", "user", "a:b")
	two.Hits, two.Descriptors = 3, append(two.Descriptors, question("sms", "").Descriptors...)
	comma := question("path", "a,b")
	comma.Hits = 2
	for _, tc := range []struct {
		name, path, body string // a body makes it a POST
		status           int
		says             string
		asked            *api.ExplainQuery
	}{
		{"one", "?domain=edge&d=org:acme", "", 200, `"domain": "edge"`, new(question("org", "acme"))},
		{"several", "?d=tier:free,user:a:b&hits=3&domain=edge&d=sms:", "", 200, `"counts": []`, &two},
		{"escaped", "?domain=edge&d=path:%2Flogin%26x", "", 200, `"headers": []`, new(question("path", "/login&x"))},
		{"refused by the daemon", "", "", 400, "domain must not be empty", &api.ExplainQuery{Hits: 1}},
		{"nothing asked for", "?domain=edge&d=org:acme&hits=0", "", 400, "want at least 1", nil},
		{"hits", "?domain=edge&d=org:acme&hits=-1", "", 400, `\"-1\" is not a whole number`, nil},
		{"another parameter", "?domain=edge&user=a&tier=b", "", 400, `unknown parameter \"tier\": want domain`, nil},
		{"two domains", "?domain=edge&domain=x&d=a:b", "", 400, "domain is given twice", nil},
		{"no value", "?domain=edge&d=org", "", 400, `\"org\" is not key:value`, nil},
		{"no key", "?domain=edge&d=a:b,:acme", "", 400, `\":acme\" is not key:value`, nil},
		{"no query", "?domain=%zz", "", 400, "invalid query", nil},
		{"too long a query", "?domain=" + strings.Repeat("x", 70_000), "", 400, "at most 65536", nil},
		{
			"posted", "", `{"domain":"edge","descriptors":[{"entries":[{"key":"path","value":"a,b"}]}],"hits":2}`, 200,
			`"domain": "edge"`, &comma,
		},
		{
			"posted without hits", "", `{"domain":"edge","descriptors":[{"entries":[{"key":"org","value":"acme"}]}]}`, 200,
			`"descriptors": [`, new(question("org", "acme")),
		},
		{"posted with no hits", "", `{"domain":"edge","hits":0}`, 400, "want at least 1", nil},
		{"posted with more", "", `{"domain":"edge","charge":true}`, 400, "unknown field", nil},
		{"posted twice", "", `{"domain":"edge"}{}`, 400, "nothing after it", nil},
		{"posted too much", "", `{"domain":"` + strings.Repeat("x", 70_000) + `"}`, 400, "too large", nil},
	} {
		asked = nil
		var w *httptest.ResponseRecorder
		if tc.body == "" {
			w = get(h, "GET", "/v1/explain"+tc.path)
		} else {
			w = post(h, "/v1/explain", tc.body)
		}
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%s: got %d %s, want %d with %s", tc.name, w.Code, w.Body, tc.status, tc.says)
		}
		if diff := cmp.Diff(tc.asked, asked); diff != "" {
			t.Errorf("query of %s (-want +got):\n%s", tc.name, diff)
		}
	}
	form := post(h, "/v1/explain", `{"domain":"edge"}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
	if form.Code != 400 || !strings.Contains(form.Body.String(), "as application/json") {
		t.Errorf("a form: got %d %s", form.Code, form.Body)
	}
}

// TestNilListsAreEmpty: nil lists are empty ones in JSON, at every depth.
func TestNilListsAreEmpty(t *testing.T) {
	o := options()
	o.Explain = func(context.Context, api.ExplainQuery) (api.ExplainAnswer, error) {
		return api.ExplainAnswer{Descriptors: []api.Explained{{StrictKey: &api.StrictKey{}, Reserve: &api.StrictKey{}}}}, nil
	}
	given := api.StrictState{Regions: []api.StrictRegion{{}}, Next: &api.NextLayout{}}
	o.Strict = func() api.StrictAnswer { return api.StrictAnswer{Strict: &given} }
	o.Status = func() api.StatusAnswer {
		return api.StatusAnswer{Strict: &given, Regions: []api.RegionState{{}}}
	}
	h := admin.New(o)
	for path, lists := range map[string][]string{
		"/v1/explain": {"headers", "counts", "leases"},
		"/v1/strict":  {"waits_for", "voters", "pins", "warnings"},
		"/v1/status":  {"circuit_breakers", "degraded", "members", "waits_for", "voters", "pins"},
		"/v1/top":     {"keys"},
	} {
		body := get(h, "GET", path).Body.String()
		for _, name := range lists {
			if !strings.Contains(body, `"`+name+`": []`) {
				t.Errorf("%s has no empty list of %s:\n%s", path, name, body)
			}
		}
	}
	if given.Regions[0].Voters != nil || given.Next.WaitsFor != nil {
		t.Error("the handler changed the value of the daemon")
	}
}

// TestUnsupportedPages: a page without a function answers 501.
func TestUnsupportedPages(t *testing.T) {
	o := options()
	o.Explain, o.Status, o.Top = nil, nil, nil
	h := admin.New(o)
	for path, says := range map[string]string{
		"/v1/explain": "this daemon does not serve explain", "/v1/status": "this daemon does not serve status",
		"/v1/top": "this daemon does not serve top",
	} {
		if w := get(h, "GET", path); w.Code != http.StatusNotImplemented || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: got %d %s, want 501 with %s", path, w.Code, w.Body, says)
		}
	}
	if w := get(h, "GET", "/v1/strict"); w.Code != 200 || !strings.Contains(w.Body.String(), `"alone": true`) {
		t.Errorf("/v1/strict of a daemon alone: got %d %s", w.Code, w.Body)
	}
}
