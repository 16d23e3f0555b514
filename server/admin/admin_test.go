package admin_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

func options() admin.Options {
	return admin.Options{
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "rld_live_keys 7\n")
		}),
		Ready: func() error { return nil },
		Rules: func() string { return "edge: tier=premium\n" },
		Explain: func(context.Context, api.ExplainQuery) (api.ExplainAnswer, error) {
			return api.ExplainAnswer{}, nil
		},
		Status:  func() api.StatusAnswer { return api.StatusAnswer{Alone: true} },
		Top:     func(api.TopQuery) api.TopAnswer { return api.TopAnswer{} },
		Version: "v1.2.3",
	}
}

func get(h http.Handler, method, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "localhost:6070"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// onSocket makes a request one over the unix socket.
func onSocket(r *http.Request) {
	at := &net.UnixAddr{Net: "unix", Name: "/run/rld/admin.sock"}
	*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at)))
	r.RemoteAddr, r.Host = "@", "localhost"
}

func TestPages(t *testing.T) {
	o := options()
	o.Pprof = true
	h := admin.New(o)
	for _, tc := range []struct {
		method, path string
		status       int
		body         string // part of it
	}{
		{"GET", "/metrics", 200, "rld_live_keys 7\n"},
		{"GET", "/healthz", 200, "ok\n"},
		{"HEAD", "/healthz", 200, ""},
		{"GET", "/readyz", 200, "ready\n"},
		{"GET", "/rlconfig", 200, "edge: tier=premium\n"},
		{"GET", "/debug/pprof/", 200, "goroutine"},
		{"GET", "/debug/pprof/goroutine?debug=1", 200, "goroutine profile:"},
		{"GET", "/debug/pprof/cmdline", 200, "admin.test"},
		{"POST", "/debug/pprof/symbol", 200, "num_symbols"},
		{"GET", "/debug/pprof/nothing", 404, "Unknown profile"},
		{"GET", "/nothing", 404, ""},
		{"POST", "/metrics", 405, ""},
		{"DELETE", "/", 405, ""},
	} {
		w := get(h, tc.method, tc.path)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.body) {
			t.Errorf("%s %s: got %d %q, want %d with %q", tc.method, tc.path, w.Code, w.Body, tc.status, tc.body)
		}
	}
}

// TestNoProfiles: profiles are for those who ask for them.
func TestNoProfiles(t *testing.T) {
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/profile", "/debug/pprof/cmdline"} {
		if w := get(admin.New(options()), "GET", path); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, w.Code)
		}
	}
}

func TestIndexListsEveryPage(t *testing.T) {
	o := options()
	o.Pprof = true
	h := admin.New(o)
	index := get(h, "GET", "/").Body.String()
	if !strings.HasPrefix(index, "rld v1.2.3\n") {
		t.Errorf("index does not begin with the version:\n%s", index)
	}
	listed := 0
	for line := range strings.Lines(index) {
		path, _, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(path, "/") {
			continue
		}
		listed++
		if w := get(h, "GET", path); w.Code != http.StatusOK {
			t.Errorf("the index lists %s, which answers %d", path, w.Code)
		}
	}
	if listed != 16 {
		t.Errorf("%d pages listed, want 16:\n%s", listed, index)
	}
}

func TestNotReady(t *testing.T) {
	o := options()
	var why error
	o.Ready = func() error { return why }
	h := admin.New(o)
	for _, tc := range []struct {
		why    error
		status int
		body   string
	}{
		{errors.New("draining"), 503, "not ready: draining\n"},
		{nil, 200, "ready\n"},
	} {
		why = tc.why
		if w := get(h, "GET", "/readyz"); w.Code != tc.status || w.Body.String() != tc.body {
			t.Errorf("readyz with %v: got %d %q, want %d %q", tc.why, w.Code, w.Body, tc.status, tc.body)
		}
		if w := get(h, "GET", "/healthz"); w.Code != http.StatusOK {
			t.Errorf("healthz with %v: got %d, want 200", tc.why, w.Code)
		}
	}
}

// TestNothingOnTheDefaultMux: the default mux belongs to the whole process and
// must not serve our pages.
func TestNothingOnTheDefaultMux(t *testing.T) {
	admin.New(options())
	if w := get(http.DefaultServeMux, "GET", "/rlconfig"); w.Code != http.StatusNotFound {
		t.Errorf("the default mux answers /rlconfig with %d", w.Code)
	}
}
