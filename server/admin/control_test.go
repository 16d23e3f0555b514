package admin_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// TestClusterCommands: only programs of this machine may begin or recover a
// cluster without credentials.
func TestClusterCommands(t *testing.T) {
	unchanged := func(*http.Request) {}
	for _, tc := range []struct {
		name, path, body string
		change           func(*http.Request)
		status           int
		has, done        string
	}{
		{"init", "init", `{"without": ["eu"]}`, unchanged, 200, `"under_way": true`, "init eu"},
		{"recover", "recover", `{"daemon": "us-0", "reason": "lost"}`, unchanged, 200, `"recovery": 3`, "recover us-0 lost"},
		{"resume", "region-resume", `{"region": "us", "reason": "lost"}`, unchanged, 200, `"dry_run": false`, "resume us lost"},
		{"remote resume", "region-resume", `{}`, func(r *http.Request) { overTCP(r, "10.0.0.9:5000") }, 401, "needs the role admin", ""},
		{"resume with an unknown field", "region-resume", `{"force": true}`, unchanged, 400, "unknown field", ""},
		{"remote init", "init", `{}`, func(r *http.Request) { overTCP(r, "10.0.0.9:5000") }, 401, "needs the role admin", ""},
		{"remote recover", "recover", `{}`, func(r *http.Request) { overTCP(r, "10.0.0.9:5000") }, 401, "needs the role admin", ""},
		{"browser", "init", `{}`, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403, "another site", ""},
		{"other host", "recover", `{}`, func(r *http.Request) { r.Host = "evil.example" }, 403, "evil.example", ""},
		{"GET", "init", `{}`, func(r *http.Request) { r.Method = "GET" }, 405, "", ""},
		{"form", "init", `{}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 400, "application/json", ""},
		{"unknown field", "recover", `{"force": true}`, unchanged, 400, "unknown field", ""},
		{"many regions", "init", `{"without": [` + strings.Repeat(`"a",`, 64) + `"a"]}`, unchanged, 400, "at most 64", ""},
		{"too long", "recover", `{"reason": "` + strings.Repeat("x", 20_000) + `"}`, unchanged, 400, "too large", ""},
		{"refused", "recover", `{"daemon": "us-9"}`, unchanged, 409, "this daemon is us-0", ""},
	} {
		done := ""
		o := options()
		o.InitCluster = func(q api.InitRequest) (api.InitAnswer, error) {
			done = "init " + strings.Join(q.Without, ",")
			return api.InitAnswer{UnderWay: true}, nil
		}
		o.RecoverCluster = func(_ context.Context, q api.RecoverRequest) (api.RecoverAnswer, error) {
			if q.Daemon == "us-9" {
				return api.RecoverAnswer{}, errors.New("this daemon is us-0")
			}
			done = "recover " + q.Daemon + " " + q.Reason
			return api.RecoverAnswer{Recovery: 3}, nil
		}
		o.ResumeRegion = func(q api.ResumeRequest) (api.ResumeAnswer, error) {
			done = "resume " + q.Region + " " + q.Reason
			return api.ResumeAnswer{}, nil
		}
		w := post(admin.New(o), "/v1/cluster/"+tc.path, tc.body, tc.change)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.has) || done != tc.done {
			t.Errorf("%s: got %d %s and did %q, want %d with %q and %q", tc.name, w.Code, w.Body, done, tc.status, tc.has, tc.done)
		}
	}
	for _, command := range []string{"init", "recover", "region-resume"} {
		if w := post(admin.New(options()), "/v1/cluster/"+command, `{}`, unchanged); w.Code != 409 || !strings.Contains(w.Body.String(), "is alone") {
			t.Errorf("%s at a daemon alone: got %d %s", command, w.Code, w.Body)
		}
	}
}

func TestClusterPages(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/cluster":         `{"at":"AT","alone":true,"cluster":null}`,
		"/v1/cluster/history": `{"at":"AT","alone":true,"begun":false,"commands":[],"dropped":[]}`,
	} {
		if got := compact(ask(t, options(), path)); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestReadyzVerbose adds a line for each check. They do not change the status.
func TestReadyzVerbose(t *testing.T) {
	o := options()
	o.Checks = func() []api.Check {
		return []api.Check{{Name: "serving", State: api.CheckOK, Text: "it does"}, {Name: "cluster", State: api.CheckWaiting, Text: "for init"}}
	}
	const want = "ready\nserving  ok       it does\ncluster  waiting  for init\n"
	if w := get(admin.New(o), "GET", "/readyz?verbose"); w.Code != 200 || w.Body.String() != want {
		t.Errorf("got %d %q, want 200 %q", w.Code, w.Body, want)
	}
	if w := get(admin.New(o), "GET", "/readyz"); w.Body.String() != "ready\n" {
		t.Errorf("got %q without verbose", w.Body)
	}
}
