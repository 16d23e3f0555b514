package daemon

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// page requests a page of the admin listener.
func (r *running) page(t *testing.T, path string, status int, into any) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socketPath(r.edges.adminUDSLis))
		},
	}}
	resp, err := client.Get("http://localhost" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%s: %s: %v: %s", path, resp.Status, err, body)
	}
	if into != nil {
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatalf("%s: %v: %s", path, err, body)
		}
	}
}

// TestPagesOfADaemonAlone requests all pages of a daemon without a region,
// including those that it does not serve.
func TestPagesOfADaemonAlone(t *testing.T) {
	c := testConfig(t, oneRule)
	r := startDaemon(t, c)
	var x api.ExplainAnswer
	r.page(t, "/v1/explain?domain=edge&d=user:a&hits=3", http.StatusOK, &x)
	d := x.Descriptors[0]
	if !x.Allowed || x.HTTPStatus != http.StatusOK || d.Rule.Line != 4 || d.Rule.File != c.Limits.Path || len(d.Key) != 16 ||
		d.Verdict.Remaining != 4_000_000_000-3 || d.Estimate.Capacity != 4_000_000_000 || len(d.Counts) != 0 || d.StrictKey != nil || d.Rights != nil {
		t.Errorf("%+v", d)
	}
	r.page(t, "/v1/explain?domain=edge", http.StatusBadRequest, nil)
	r.page(t, "/v1/explain?d=user:a", http.StatusBadRequest, nil)

	var s api.StatusAnswer
	r.page(t, "/v1/status", http.StatusOK, &s)
	if !s.Alone || !s.Daemon.Ready || s.Daemon.Version != "test" || s.Daemon.RuleCount != 1 || s.Daemon.MaxKeys != c.MaxKeys ||
		len(s.Regions)+len(s.Breakers)+len(s.Degraded) > 0 || s.Strict != nil || s.Daemon.LimitsFault != "" {
		t.Errorf("%+v", s)
	}
	for range 100 {
		call := &node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, "user", "a")}}
		if err := r.engine.Check(context.Background(), call); err != nil {
			t.Fatal(err)
		}
	}
	var top api.TopAnswer
	r.page(t, "/v1/top?reveal=true", http.StatusOK, &top)
	if len(top.Keys) != 1 || top.Keys[0].Text != "user=a" || top.Keys[0].Key != d.Key || top.Keys[0].HitsPerSecond <= 0 {
		t.Errorf("%+v", top)
	}
	var strict api.StrictAnswer
	if r.page(t, "/v1/strict", http.StatusOK, &strict); !strict.Alone || strict.Strict != nil {
		t.Errorf("%+v", strict)
	}

	if err := os.WriteFile(c.Limits.Path, []byte("domain: edge\ndescriptors: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the fault is told", func() bool {
		r.page(t, "/v1/status", http.StatusOK, &s)
		return strings.Contains(s.Daemon.LimitsFault, "limits.yaml:2")
	})
	if err := os.WriteFile(c.Limits.Path, []byte(oneRule), 0o600); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the fault is over", func() bool {
		r.page(t, "/v1/status", http.StatusOK, &s)
		return s.Daemon.LimitsFault == ""
	})
}
