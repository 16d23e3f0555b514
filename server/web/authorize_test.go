package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
)

// TestAuthorization calls with right, wrong and missing credentials. An answer
// without a decision carries none of the fields of one.
func TestAuthorization(t *testing.T) {
	const check, mapped = "/v1/check?domain=d&a=b", "/api/v1/rate_limit?user_id=b"
	for _, tt := range []struct {
		name, token, path, body string
		calls, want             int
		code                    string
	}{
		{"right", "right", check, "", 1, 200, ""},
		{"missing", "", check, "", 1, 401, "unauthenticated"},
		{"wrong", "wrong", check, "", 1, 401, "unauthenticated"},
		{"wrong domain", "right", "/v1/check?domain=e&a=b", "", 1, 403, "forbidden"},
		{"wrong domain in a body", "right", "/v1/check", `{"domain": "e"}`, 1, 403, "forbidden"},
		{"peek", "reads", check + "&peek=true", "", 1, 200, ""},
		{"wrong verb", "reads", check, "", 1, 403, "forbidden"},
		{"rate", "slow", check, "", 2, 429, "token_rate_exceeded"},
		{"missing and malformed", "", "/v1/check?domain=", "", 1, 401, "unauthenticated"},
		{"missing for a mapping", "", mapped, "", 1, 401, "unauthenticated"},
		{"right for a mapping", "right", mapped, "", 1, 200, ""},
		{"missing for Envoy", "", "/json", "{", 1, 401, "unauthenticated"},
		{"wrong domain for Envoy", "right", "/json", `{"domain": "e"}`, 1, 403, "forbidden"},
		{"right for Envoy", "right", "/json", `{"domain": "d"}`, 1, 200, ""},
		{"health", "", "/healthcheck", "", 1, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			s := server.DefaultSettings()
			s.Authorizer = auth.NewAuthorizer(auth.Tokens{
				{Name: "d", SHA256: auth.Hash("right"), Domains: []string{"d"}},
				{Name: "eyes", SHA256: auth.Hash("reads"), Domains: []string{"d"}, Verb: auth.Read},
				{Name: "slow", SHA256: auth.Hash("slow"), Domains: []string{"d"}, Rate: 0.001},
			}, nil)
			m := DefaultMapping()
			m.Domain = "d"
			h := New(Options{
				Engine: echo{}, Settings: s, Mapping: m, Ready: func() bool { return true },
				RLS: func(context.Context, *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
					asked++
					return &ratelimit.RateLimitResponse{OverallCode: ratelimit.RateLimitResponse_OK}, nil
				},
			})
			var w *httptest.ResponseRecorder
			for range tt.calls {
				method := http.MethodGet
				if tt.body != "" {
					method = http.MethodPost
				}
				r := httptest.NewRequest(method, tt.path, strings.NewReader(tt.body))
				r.Header.Set("Content-Type", "application/json")
				if tt.token != "" {
					r.Header.Set("Authorization", "Bearer "+tt.token)
				}
				w = httptest.NewRecorder()
				h.ServeHTTP(w, r)
			}
			if w.Code != tt.want || !strings.Contains(w.Body.String(), tt.code) {
				t.Errorf("%d %s, want %d with %q", w.Code, w.Body, tt.want, tt.code)
			}
			if challenge := w.Header().Get("WWW-Authenticate"); (challenge != "") != (tt.want == 401) {
				t.Errorf("WWW-Authenticate: %q", challenge)
			}
			decision := w.Header().Get("Ratelimit") != "" || strings.Contains(w.Body.String(), `"allowed"`)
			if tt.want != 200 && (decision || asked > 0) {
				t.Errorf("a refused call was decided, or looks so: %v %s", w.Header(), w.Body)
			}
			if tt.want == 429 && w.Header().Get("Retry-After") != "1000" {
				t.Errorf("Retry-After: %q, want 1000", w.Header().Get("Retry-After"))
			}
		})
	}
}
