package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/gateway"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
)

// counting is an engine with two rules: 10 hits a minute for each value of
// descriptors with the one entry api_key, and no limit for those with the one
// entry internal. Domain down cannot be decided.
type counting struct{ hits map[string]uint64 }

func (*counting) Rules() *rules.Set { return nil }

func (c *counting) Check(_ context.Context, call *node.Call) error {
	if call.Domain == "down" {
		return errors.New("down")
	}
	call.Decision = node.Decision{Allowed: true, Refused: -1}
	for i, d := range call.Descriptors {
		if len(d.Entries) == 1 && d.Entries[0].Key == "internal" {
			call.Statuses = append(call.Statuses, node.Status{Rule: &rules.Rule{Path: "internal"}})
			continue
		}
		if len(d.Entries) != 1 || d.Entries[0].Key != "api_key" {
			call.Statuses = append(call.Statuses, node.Status{})
			continue
		}
		l := &rules.Limit{Requests: 10, Unit: rules.Minute, Multiplier: 1}
		s := node.Status{Rule: &rules.Rule{Path: "api_key", Limit: l}, Limit: l, Reset: time.Minute}
		value := d.Entries[0].Value
		if used := c.hits[value]; used+d.Hits > 10 {
			s.Over, s.Retry, s.Remaining = true, time.Minute, 10-used
			if value == "closed" {
				s.Gate = node.FailureGate
			}
			call.Decision = node.Decision{Refused: i}
		} else if !call.Peek {
			c.hits[value] += d.Hits
			s.Remaining = 10 - c.hits[value]
		}
		call.Statuses = append(call.Statuses, s)
	}
	return nil
}

// gatewayRig is a handler with mappings, and the faults that it counted.
type gatewayRig struct {
	http.Handler
	faults []string
}

func newGatewayRig(settings server.Settings, gateways map[string]gateway.Settings) *gatewayRig {
	r := &gatewayRig{}
	r.Handler = New(Options{
		Engine: &counting{hits: map[string]uint64{}}, Settings: settings, Ready: func() bool { return true }, Gateways: gateways,
		Faulty: func(name string, reason gateway.Reason) { r.faults = append(r.faults, name+" "+reason.String()) },
		Now:    startOfScripts,
	})
	return r
}

// ask returns the answer to a request with headers "Name: value".
func (r *gatewayRig) ask(method, target string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, nil)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

// byAPIKey is a mapping of the header X-Api-Key.
func byAPIKey(a gateway.Answers) gateway.Settings {
	return gateway.Settings{Domain: "web", Answers: a, Descriptors: [][]gateway.Entry{
		{{Key: "api_key", Source: gateway.Source{Header: "X-Api-Key"}}},
	}}
}

// TestInjections holds that nothing that a client sends buys it a request: of
// 13 requests a limit of 10 admits 10, and a faulty one is never admitted.
func TestInjections(t *testing.T) {
	const path = "/v1/forward-auth/edge"
	for _, tt := range []struct {
		name     string
		target   string
		headers  []string
		admitted int
	}{
		{"plain", path, []string{"X-Api-Key: k1"}, 10},
		{"a peek in the value", path, []string{"X-Api-Key: k1&hits=0"}, 10},
		{"an entry in the value", path, []string{"X-Api-Key: k1,x:y"}, 10},
		{"a descriptor in the value", path, []string{"X-Api-Key: k1&d=api_key:k2&peek=true"}, 10},
		{"escapes in the value", path, []string{"X-Api-Key: k1%26hits%3D0%2Cx%3Ay"}, 10},
		{"not ASCII", path, []string{"X-Api-Key: clé=1; , :"}, 10},
		{"a query on the endpoint", path + "?hits=0&peek=true&domain=other&deny_status=200&d=a:b&headers=legacy", []string{"X-Api-Key: k1"}, 10},
		{"a broken query", path + "?%zz;&&=", []string{"X-Api-Key: k1"}, 10},
		{"a query of the request", path, []string{"X-Api-Key: k1", "X-Original-URI: /?hits=0&peek=true"}, 10},
		{"a cost that no setting names", path, []string{"X-Api-Key: k1", "X-Cost: 0", "Hits: 0"}, 10},
		{"twice", path, []string{"X-Api-Key: k1", "X-Api-Key: k2"}, 0},
		{"NUL", path, []string{"X-Api-Key: k1\x00"}, 0},
		{"not UTF-8", path, []string{"X-Api-Key: k\xff"}, 0},
		{"8 KiB", path, []string{"X-Api-Key: " + strings.Repeat("x", 8<<10)}, 0},
		{"missing", path, nil, 0},
		{"empty", path, []string{"X-Api-Key: "}, 0},
	} {
		for _, method := range []string{"GET", "POST", "HEAD", "DELETE", "PROPFIND"} {
			r := newGatewayRig(server.Settings{}, map[string]gateway.Settings{
				"edge": byAPIKey(gateway.Answers{DenyStatus: 403, OnNoMatch: gateway.NoMatchDeny}),
			})
			admitted := 0
			for range 13 {
				switch w := r.ask(method, tt.target, tt.headers...); w.Code {
				case http.StatusOK:
					admitted++
				case http.StatusForbidden:
				default:
					t.Fatalf("%s: status %d", tt.name, w.Code)
				}
			}
			if admitted != tt.admitted {
				t.Errorf("%s, %s: %d admitted, want %d", method, tt.name, admitted, tt.admitted)
			}
			if faults := len(r.faults); faults != 0 && tt.admitted > 0 || faults == 0 && tt.admitted == 0 {
				t.Errorf("%s: %d faults counted", tt.name, faults)
			}
		}
	}
}

// TestForwardAuth holds the answers of mappings: status, headers, body and the
// counted fault. Each case is asked 11 times, and the last answer counts.
func TestForwardAuth(t *testing.T) {
	tokens := server.Settings{Authorizer: auth.NewAuthorizer(auth.Tokens{
		{Name: "proxy", SHA256: auth.Hash("right"), Domains: []string{"web"}},
	}, nil)}
	down := byAPIKey(gateway.Answers{DenyStatus: 403, FailureStatus: 500})
	down.Domain = "down"
	logs := byAPIKey(gateway.Answers{Action: gateway.ActionLog})
	logs.Domain = "down"
	unknown := byAPIKey(gateway.Answers{OnNoMatch: gateway.NoMatchDeny})
	unknown.Descriptors[0][0].Key = "other"
	internal := byAPIKey(gateway.Answers{OnNoMatch: gateway.NoMatchDeny})
	internal.Descriptors[0][0].Key = "internal"
	anything := byAPIKey(gateway.Answers{})
	anything.Descriptors[0][0].Key = "other"
	cost := byAPIKey(gateway.Answers{})
	cost.Cost = &gateway.Cost{Header: "X-Cost", Max: 5}
	staff := byAPIKey(gateway.Answers{OnNoMatch: gateway.NoMatchDeny})
	staff.Exempt = &gateway.Client{Networks: map[string][]string{"staff": {"192.0.2.0/24"}}}
	key := []string{"X-Api-Key: k1"}
	from := func(list string) []string { return append([]string{"X-Forwarded-For: " + list}, key...) }
	for _, tt := range []struct {
		name     string
		settings server.Settings
		gateway  gateway.Settings
		headers  []string
		status   int
		header   string // "Name: value" of the answer
		body     string
		fault    string
	}{
		{"denied", server.Settings{}, byAPIKey(gateway.Answers{}), key, 429, "Retry-After: 60", `"error":"rate_limit_exceeded"`, ""},
		{"headers", server.Settings{}, byAPIKey(gateway.Answers{}), key, 429, `Ratelimit: "api_key";r=0;t=60`, `"allowed":false`, ""},
		{"problem", server.Settings{}, byAPIKey(gateway.Answers{}), key, 429, "Content-Type: application/problem+json", `"status":429`, ""},
		{"legacy headers", server.Settings{LegacyHeaders: true}, byAPIKey(gateway.Answers{}), key, 429, "X-Ratelimit-Limit: 10", "", ""},
		{"status", server.Settings{}, byAPIKey(gateway.Answers{DenyStatus: 403}), key, 403, "", `"status":403`, ""},
		{"challenge", server.Settings{}, byAPIKey(gateway.Answers{Action: "challenge"}), key, 401, `Www-Authenticate: RateLimit realm="edge"`, "", ""},
		{"redirect", server.Settings{}, byAPIKey(gateway.Answers{Action: "challenge", ChallengeURL: "/c"}), key, 302, "Location: /c", "", ""},
		{"exempt", server.Settings{}, staff, from("192.0.2.7"), 200, "", "", ""},
		{"not exempt by what a client sends", server.Settings{}, staff, from("192.0.2.7, 198.51.100.1"), 429, "", `"allowed":false`, ""},
		{"exempt without an address", server.Settings{}, staff, from("me"), 429, "", `"invalid_request"`, "bad_address"},
		{"log", server.Settings{}, byAPIKey(gateway.Answers{Action: "log"}), key, 200, "X-Ratelimit-Status: would_deny", "", ""},
		{"shadow", server.Settings{Shadow: true}, byAPIKey(gateway.Answers{}), key, 200, "X-Ratelimit-Status: would_deny", "", ""},
		{"log of a fault", server.Settings{}, byAPIKey(gateway.Answers{Action: "log"}), []string{"X-Api-Key: a", "X-Api-Key: b"}, 200, "X-Ratelimit-Status: would_deny", "", "repeated"},
		{"fault", server.Settings{}, byAPIKey(gateway.Answers{}), []string{"X-Api-Key: a", "X-Api-Key: b"}, 429, "Retry-After: ", `"message":"api_key is given twice","allowed":false`, "repeated"},
		{"challenged fault", server.Settings{}, byAPIKey(gateway.Answers{Action: "challenge", ChallengeURL: "/c"}), []string{"X-Api-Key: a", "X-Api-Key: b"}, 302, "Location: /c", "", "repeated"},
		{"failure", server.Settings{}, down, key, 500, "Retry-After: 1", `"status":500,"error":"unavailable"`, ""},
		{"log of a failure", server.Settings{}, logs, key, 200, "Retry-After: ", "", ""},
		{"owner unreachable", server.Settings{}, byAPIKey(gateway.Answers{FailureStatus: 500}), []string{"X-Api-Key: closed"}, 500, "Retry-After: 60", `"error":"unavailable"`, ""},
		{"nothing to limit by", server.Settings{}, byAPIKey(gateway.Answers{}), nil, 200, "Cache-Control: no-store", "", ""},
		{"no rule", server.Settings{}, anything, key, 200, "", "", ""},
		{"no rule is denied", server.Settings{}, unknown, key, 429, "", `"error":"no_match"`, "no_match"},
		{"a rule without a limit", server.Settings{}, internal, key, 200, "", "", ""},
		{"a request costs", server.Settings{}, cost, []string{"X-Api-Key: k1", "X-Cost: 4"}, 429, `Ratelimit: "api_key";r=2;t=60`, "", ""},
		{"a cost of 0", server.Settings{}, cost, []string{"X-Api-Key: k1", "X-Cost: 0"}, 429, "", "cost is no whole number", "bad_cost"},
		{"a page", server.Settings{}, byAPIKey(gateway.Answers{}), []string{"X-Api-Key: k2", "Sec-Fetch-Site: cross-site"}, 429, "", `"error":"forbidden"`, "cross_site"},
		{"a page behind a gateway", server.Settings{}, byAPIKey(gateway.Answers{}), []string{"Sec-Fetch-Site: cross-site", "X-Original-Uri: /"}, 200, "", "", ""},
		{"no token", tokens, byAPIKey(gateway.Answers{DenyStatus: 403}), nil, 403, "", `"error":"forbidden"`, "unauthorized"},
		{"token", tokens, byAPIKey(gateway.Answers{DenyStatus: 403}), []string{"Authorization: Bearer right"}, 200, "", "", ""},
		{"token of another domain", tokens, down, []string{"Authorization: Bearer right"}, 403, "", `"error":"forbidden"`, "unauthorized"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newGatewayRig(tt.settings, map[string]gateway.Settings{"edge": tt.gateway})
			var w *httptest.ResponseRecorder
			for range 11 {
				r.faults = nil
				w = r.ask("POST", "/v1/forward-auth/edge", tt.headers...)
			}
			name, value, _ := strings.Cut(tt.header, ": ")
			if w.Code != tt.status || name != "" && w.Header().Get(name) != value || !strings.Contains(w.Body.String(), tt.body) ||
				w.Code == 200 && w.Body.Len() > 0 {
				t.Errorf("%d %v\n%s", w.Code, w.Header(), w.Body)
			}
			want := "[]"
			if tt.fault != "" {
				want = "[edge " + tt.fault + "]"
			}
			if got := fmt.Sprint(r.faults); got != want {
				t.Errorf("faults %s, want %s", got, want)
			}
		})
	}
}

// TestPathInjections holds that with target: path a client cannot choose
// another template than that of the path that the gateway proxies, nor add a
// parameter of rld: of 13 requests, each with another {i}, a limit of 10 admits
// 10.
func TestPathInjections(t *testing.T) {
	const path = "/v1/forward-auth/edge"
	byPath := gateway.Settings{Domain: "web", Target: gateway.TargetPath, Answers: gateway.Answers{
		DenyStatus: 403, OnNoMatch: gateway.NoMatchDeny,
	}, Descriptors: [][]gateway.Entry{{{Key: "api_key", Source: gateway.Source{Template: []string{"/free/*", "/v1/*"}}}}}}
	for _, tt := range []struct {
		name     string
		target   string
		headers  []string
		admitted int
	}{
		{"plain", "/v1/a", nil, 10},
		{"a query of the request", "/v1/a{i}?hits=0&peek=true&domain=other&deny_status=200&d=a:b", nil, 10},
		{"a broken query", "/v1/a?%zz;&&=", nil, 10},
		{"a path in the query", "/v1/a?/free/{i}", nil, 10},
		{"a question in a question", "/v1/forward-auth/edge/free/{i}", nil, 10},
		{"many slashes", "///v1//{i}", nil, 10},
		{"dots", "/free/../v1/{i}", nil, 10},
		{"encoded dots", "/free/%2e%2e/v1/{i}", nil, 10},
		{"above the root", "/../../../../v1/{i}", nil, 10},
		{"encoded letters", "/%761/{i}", nil, 10},
		{"parameters of a segment", "/v1;x={i}/a", nil, 10},
		{"a fragment", "/v1/{i}#/../../free/a", nil, 10},
		{"headers of another convention", "/v1/a", []string{
			"X-Original-URI: /free/{i}", "X-Forwarded-Uri: /free/{i}", "X-Auth-Request-Redirect: /free/{i}", "X-Original-URL: http://a/free/{i}",
		}, 10},
		{"such headers twice", "/v1/a", []string{"X-Original-URI: /free/a", "X-Original-URI: /free/b"}, 10},
		{"a header in place of the path", "", []string{"X-Original-URI: /v1/a"}, 0},
		{"a query without a path", "?/v1/a", nil, 0},
		{"a fragment without a path", "#/v1/a", nil, 0},
		{"8 KiB", "/v1/" + strings.Repeat("x", 8<<10), nil, 0},
		{"no template", "/other/{i}", nil, 0},
		{"NUL", "/v%00", nil, 0},
	} {
		for _, method := range []string{"GET", "POST", "HEAD", "OPTIONS", "PROPFIND"} {
			r := newGatewayRig(server.Settings{}, map[string]gateway.Settings{"edge": byPath})
			admitted := 0
			for i := range 13 {
				number := strings.NewReplacer("{i}", fmt.Sprint(i))
				var headers []string
				for _, line := range tt.headers {
					headers = append(headers, number.Replace(line))
				}
				switch w := r.ask(method, path+number.Replace(tt.target), headers...); w.Code {
				case http.StatusOK:
					admitted++
				case http.StatusForbidden:
				default:
					t.Fatalf("%s: status %d", tt.name, w.Code)
				}
			}
			if admitted != tt.admitted {
				t.Errorf("%s, %s: %d admitted, want %d", method, tt.name, admitted, tt.admitted)
			}
			if faults := len(r.faults); faults != 0 && tt.admitted > 0 || faults != 13 && tt.admitted == 0 {
				t.Errorf("%s: %d faults counted: %v", tt.name, faults, r.faults)
			}
		}
	}
}

// TestPathSources holds that with target: path the request line and the header
// Host alone describe the request.
func TestPathSources(t *testing.T) {
	forged := []string{"X-Original-Method: HEAD", "X-Forwarded-Host: other.test", "X-Original-URL: http://b/?user=x"}
	for want, s := range map[string]gateway.Source{
		"DELETE": {Method: true}, "example.com": {Host: true}, "u 1": {Query: "user"}, "/v1/*": {Template: []string{"/v1/*"}},
	} {
		e := &counting{hits: map[string]uint64{}}
		h := New(Options{Engine: e, Ready: func() bool { return true }, Now: startOfScripts, Gateways: map[string]gateway.Settings{
			"edge": {Domain: "web", Target: gateway.TargetPath, Descriptors: [][]gateway.Entry{{{Key: "api_key", Source: s}}}},
		}})
		w := (&gatewayRig{Handler: h}).ask("DELETE", "/v1/forward-auth/edge/v1/a?user=u+1", forged...)
		if w.Code != 200 || fmt.Sprint(e.hits) != fmt.Sprint(map[string]uint64{want: 1}) {
			t.Errorf("%+v: %d %v, want %s", s, w.Code, e.hits, want)
		}
	}
}

// TestForwardAuthPaths holds that the name of a mapping is exact.
func TestForwardAuthPaths(t *testing.T) {
	byPath := byAPIKey(gateway.Answers{})
	byPath.Target = gateway.TargetPath
	r := newGatewayRig(server.Settings{}, map[string]gateway.Settings{"edge": byAPIKey(gateway.Answers{}), "path": byPath})
	for path, want := range map[string]int{
		"edge": 200, "Edge": 404, "edge/": 404, "": 404, "edge/x": 404, "edg%65": 200, "edge?/x": 200, "edge%2Fx": 404,
		"path": 200, "path/": 200, "path/x": 200, "path?x": 200, "path*": 404, "pathx/y": 404, "pat%68/x": 404, "path%2Fx": 404,
		"/path/x": 404, "path/../edge": 200, "edge/../path": 404, "path//v1/forward-auth/edge": 200,
	} {
		w := r.ask("GET", "/v1/forward-auth/"+path, "X-Api-Key: k1")
		if w.Code != want || want == 404 && !strings.Contains(w.Body.String(), `"/v1/forward-auth/NAME"`) {
			t.Errorf("%s: %d\n%s", path, w.Code, w.Body)
		}
	}
}
