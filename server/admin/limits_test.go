package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// TestLimitsCommands: only programs of this machine may change limits without
// credentials. A command has its own fields and no others, and the files of a
// rule set are larger than other bodies.
func TestLimitsCommands(t *testing.T) {
	unchanged := func(*http.Request) {}
	remote := func(r *http.Request) { overTCP(r, "10.0.0.9:5000") }
	large := `{"files": [{"name": "a", "text": "` + strings.Repeat(`x\n`, 2<<20) + `"}]}`
	for _, tc := range []struct {
		name, path, body string
		change           func(*http.Request)
		status           int
		has, done        string
	}{
		{"apply", "apply", `{"files": [{"name": "a", "text": "b"}], "reason": "new", "if_version": "7"}`, unchanged, 200, `"version": "9"`, "apply 1 files new"},
		{"no files", "apply", `{}`, unchanged, 200, `"version": "9"`, "apply 0 files "},
		{"large files", "apply", large, unchanged, 200, `"version": "9"`, "apply 1 files "},
		{"too large files", "apply", `{"reason": "` + strings.Repeat("x", 12<<20) + `"}`, unchanged, 400, "too large", ""},
		{"large override", "set", large, unchanged, 400, "too large", ""},
		{"roll back", "rollback", `{"version": "7"}`, unchanged, 200, "", "rollback 0 files "},
		{"roll back to nothing", "rollback", `{}`, unchanged, 400, "a field is missing", ""},
		{"set", "set", `{"rule": "user", "requests": 0, "for_seconds": 60}`, unchanged, 200, "", "set 0 files "},
		{"set without a length", "set", `{"rule": "user", "requests": 5}`, unchanged, 400, "for_seconds is 0", ""},
		{"set nothing", "set", `{"rule": "user", "for_seconds": 60}`, unchanged, 400, "a field is missing", ""},
		{"set a key", "set", `{"rule": "user", "key": "k", "requests": 5, "for_seconds": 60}`, unchanged, 400, "fields of another command", ""},
		{"unset", "unset", `{"rule": "user", "domain": "edge"}`, unchanged, 200, "", "unset 0 files "},
		{"unset for an hour", "unset", `{"rule": "user", "for_seconds": 3600}`, unchanged, 400, "fields of another command", ""},
		{"block", "block", `{"key": "k", "for_seconds": 60}`, unchanged, 200, "", "block 0 files "},
		{"block a rule", "block", `{"rule": "k", "for_seconds": 60}`, unchanged, 400, "fields of another command", ""},
		{"unblock", "unblock", `{"key": "k"}`, unchanged, 200, "", "unblock 0 files "},
		{"unblock nothing", "unblock", `{}`, unchanged, 400, "a field is missing", ""},
		{"remote", "set", `{"rule": "user", "requests": 5, "for_seconds": 60}`, remote, 401, "needs the role operate", ""},
		{"unknown field", "unset", `{"rule": "user", "force": true}`, unchanged, 400, "unknown field", ""},
		{"refused", "unset", `{"rule": "other"}`, unchanged, 409, `rule \"other\" has no override`, ""},
	} {
		done := ""
		o := options()
		o.ChangeLimits = func(_ context.Context, c api.LimitsCommandName, q api.LimitsRequest) (api.LimitsCommandAnswer, error) {
			if q.Rule == "other" {
				return api.LimitsCommandAnswer{}, errors.New(`rule "other" has no override`)
			}
			done = fmt.Sprintf("%s %d files %s", c, len(q.Files), q.Reason)
			return api.LimitsCommandAnswer{Done: true, Version: "9"}, nil
		}
		w := post(admin.New(o), "/v1/limits/"+tc.path, tc.body, tc.change)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.has) || done != tc.done {
			t.Errorf("%s: got %d %.300s and did %q, want %d with %q and %q", tc.name, w.Code, w.Body, done, tc.status, tc.has, tc.done)
		}
	}
	if w := post(admin.New(options()), "/v1/limits/unset", `{"rule": "user"}`, unchanged); w.Code != 409 || !strings.Contains(w.Body.String(), "is alone") {
		t.Errorf("a command to a daemon alone: got %d %s", w.Code, w.Body)
	}
}

func TestLimitsPages(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/limits": `{"at":"AT","alone":true,"begun":false,"rules_version":"","in_use_version":"","pending_version":"","waits_for":[],` +
			`"fault":"","files_fault":"","domains":[],"overrides":[]}`,
		"/v1/limits/history": `{"at":"AT","alone":true,"versions":[]}`,
	} {
		if got := compact(ask(t, options(), path)); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	o := options()
	o.LimitsCommand = func(id string) (api.LimitsCommandAnswer, error) {
		if id == "" {
			return api.LimitsCommandAnswer{}, errors.New("no id")
		}
		return api.LimitsCommandAnswer{ID: id}, nil
	}
	if w := get(admin.New(o), "GET", "/v1/limits/command?id=00ff"); w.Code != 200 || !strings.Contains(w.Body.String(), `"id": "00ff"`) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w := get(admin.New(o), "GET", "/v1/limits/command"); w.Code != 409 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestCommandsEndWithTheirAuthor: a command waits for its result as long as its
// author does, within bounds.
func TestCommandsEndWithTheirAuthor(t *testing.T) {
	for _, tc := range []struct {
		wait string
		want time.Duration
	}{{"0", 15 * time.Second}, {"1", 5 * time.Second}, {"8.5", 8500 * time.Millisecond}, {"1e300", 15 * time.Second}, {"-1", 15 * time.Second}} {
		var within [2]time.Duration
		left := func(ctx context.Context) time.Duration {
			end, _ := ctx.Deadline()
			return time.Until(end)
		}
		o := options()
		o.ChangeLimits = func(ctx context.Context, _ api.LimitsCommandName, _ api.LimitsRequest) (out api.LimitsCommandAnswer, err error) {
			within[0] = left(ctx)
			return out, nil
		}
		o.ChangeCluster = func(ctx context.Context, _ api.ClusterCommandName, _ api.ChangeRequest) (out api.ChangeAnswer, err error) {
			within[1] = left(ctx)
			return out, nil
		}
		post(admin.New(o), "/v1/limits/unset", `{"rule": "user", "wait_seconds": `+tc.wait+`}`, func(*http.Request) {})
		post(admin.New(o), "/v1/cluster/region-drain", `{"name": "eu", "wait_seconds": `+tc.wait+`}`, func(*http.Request) {})
		for i, got := range within {
			if got > tc.want || got < tc.want-time.Second {
				t.Errorf("wait %s, command %d: %v, want %v", tc.wait, i, got, tc.want)
			}
		}
	}
}
