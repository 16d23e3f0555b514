package admin_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

func TestLayoutCommands(t *testing.T) {
	type call struct {
		c api.LayoutCommand
		q api.LayoutRequest
	}
	var done *call
	o := options()
	o.Layout = func(c api.LayoutCommand, q api.LayoutRequest) (api.LayoutAnswer, error) {
		done = &call{c, q}
		if len(q.Voters) == 2 {
			return api.LayoutAnswer{}, errors.New("2 voters: want an odd number")
		}
		return api.LayoutAnswer{Before: 3, After: 4}, nil
	}
	h := admin.New(o)
	for _, tc := range []struct {
		path, body string
		status     int
		says       string
		done       *call
	}{
		{
			"set-voters", `{"voters": ["a", "b", "c"]}`, 200, `"layout_after": 4`,
			&call{api.SetVoters, api.LayoutRequest{Voters: []string{"a", "b", "c"}}},
		},
		{
			"set-voters", `{"voters": ["a"], "region": "us", "dry_run": true}`, 200, `"changes": []`,
			&call{api.SetVoters, api.LayoutRequest{Voters: []string{"a"}, Region: "us", DryRun: true}},
		},
		{
			"set-voters", `{"voters": ["a", "b"]}`, 409, "want an odd number",
			&call{api.SetVoters, api.LayoutRequest{Voters: []string{"a", "b"}}},
		},
		{
			"pin", `{"rule": "login", "region": "us"}`, 200, `"layout_before": 3`,
			&call{api.PinRule, api.LayoutRequest{Rule: "login", Region: "us"}},
		},
		{"unpin", `{"rule": "login"}`, 200, "", &call{api.UnpinRule, api.LayoutRequest{Rule: "login"}}},
		{"set-voters", `{}`, 400, `want {\"voters\"`, nil},
		{"set-voters", `{"voters": ["a"], "rule": "login"}`, 400, `want {\"voters\"`, nil},
		{"pin", `{"rule": "login"}`, 400, `want {\"rule\": \"...\", \"region\"`, nil},
		{"pin", `{"region": "us"}`, 400, `want {\"rule\"`, nil},
		{"unpin", `{"rule": "login", "region": "us"}`, 400, `want {\"rule\": \"...\"}`, nil},
		{"unpin", `{"rule": "login"} {}`, 400, "nothing after it", nil},
		{"unpin", `{"rule": "` + strings.Repeat("x", 5_000) + `"}`, 400, "at most 4096", nil},
		{"pin", `{"rule": "` + strings.Repeat("x", 20_000) + `"}`, 400, "too large", nil},
		{"set-world", `{}`, 404, "", nil},
	} {
		done = nil
		w := post(h, "/v1/strict/"+tc.path, tc.body)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) || !reflect.DeepEqual(done, tc.done) {
			t.Errorf("%s %s: got %d %s and did %+v, want %d with %s and %+v", tc.path, tc.body, w.Code, w.Body, done,
				tc.status, tc.says, tc.done)
		}
	}
}

// TestRemoteLayoutCommandsAreRefused: see TestRemoteCommandsAreRefused.
func TestRemoteLayoutCommandsAreRefused(t *testing.T) {
	done := false
	o := options()
	o.Layout = func(api.LayoutCommand, api.LayoutRequest) (api.LayoutAnswer, error) {
		done = true
		return api.LayoutAnswer{}, nil
	}
	h := admin.New(o)
	for _, c := range api.LayoutCommands() {
		for name, change := range map[string]func(*http.Request){
			"from afar":      func(r *http.Request) { r.RemoteAddr = "10.0.0.9:5000" },
			"by a name":      func(r *http.Request) { r.Host = "evil.example:6070" },
			"from a page":    func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
			"from a browser": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") },
		} {
			if w := post(h, "/v1/strict/"+string(c), `{"rule": "login"}`, change); w.Code != 403 || done {
				t.Errorf("%s %s: got %d %s", c, name, w.Code, w.Body)
			}
		}
		if w := get(h, "GET", "/v1/strict/"+string(c)); w.Code/100 != 4 {
			t.Errorf("GET of %s: got %d %s", c, w.Code, w.Body)
		}
	}
	w := post(admin.New(options()), "/v1/strict/unpin", `{"rule": "login"}`)
	if w.Code != 409 || !strings.Contains(w.Body.String(), "does not serve strict keys") {
		t.Errorf("a daemon alone: got %d %s", w.Code, w.Body)
	}
}
