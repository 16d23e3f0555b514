//go:build e2e

package gateways

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// envoyRefuses are injections that Envoy, or the script of the example, may
// refuse before rld is asked.
var envoyRefuses = []string{"%72eports", "invalid UTF-8", "7 KiB", "the method QUERY", ";x", "Connection: close, X-Forwarded"}

var (
	envoy = proxy{
		name: "envoy", folder: "envoy", files: []string{"envoy.yaml", "refuse.lua"}, version: "envoy --version | grep version",
		command: "envoy -c envoy.yaml --disable-hot-restart", grpc: true, header: "X-RateLimit-Limit", refuses: envoyRefuses,
		killed: http.StatusServiceUnavailable, silent: http.StatusServiceUnavailable,
	}
	extAuthz = proxy{
		name: "envoy with ext_authz", folder: "envoy", files: []string{"ext-authz.yaml", "refuse.lua"}, version: envoy.version,
		command: "envoy -c ext-authz.yaml --disable-hot-restart", refuses: envoyRefuses,
		killed: http.StatusServiceUnavailable, silent: http.StatusServiceUnavailable,
	}
)

// open is Envoy with failure_mode_deny false, as its page describes.
func open(p proxy) proxy {
	p.name += " that fails open"
	p.replace = [2]string{"failure_mode_deny: true\n                      status", "failure_mode_deny: false\n                      status"}
	p.killed, p.silent = http.StatusOK, http.StatusOK
	return p
}

// findEnvoy returns the folder with the program envoy: that of the file that
// ENVOY names, or of PATH. Without one the test is skipped, or fails if ENVOY
// is set.
func findEnvoy(t *testing.T) string {
	t.Helper()
	path, named := os.LookupEnv("ENVOY")
	if !named {
		path = "envoy"
	}
	path, err := exec.LookPath(path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	switch {
	case err != nil && named:
		t.Fatalf("ENVOY: %v", err)
	case err != nil:
		t.Skip("LEFT OUT: no test has run Envoy, since there is no program envoy here: it is no package of Debian. " +
			"The workflow .github/workflows/envoy.yaml installs it. With a release of Envoy: " +
			"ENVOY=/path/to/envoy go test -tags e2e -count=1 -v -run Envoy ./internal/e2e/gateways")
	}
	if filepath.Base(path) == "envoy" {
		return filepath.Dir(path)
	}
	dir := t.TempDir() // a release has its version in its name
	if err := os.Symlink(path, filepath.Join(dir, "envoy")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestEnvoy runs the tests of the other proxies with Envoy, by its rate limit
// filter and by ext_authz, and tests of features that only that filter has.
func TestEnvoy(t *testing.T) {
	dir := findEnvoy(t)
	for _, p := range []proxy{envoy, extAuthz} {
		p.path = dir
		t.Run(p.name, func(t *testing.T) { everything(t, p) })
	}
	p := open(envoy)
	p.path = dir
	t.Run(p.name, func(t *testing.T) {
		p.logVersion(t)
		rldFails(t, p)
	})
	p = envoy
	p.path = dir
	t.Run("headers", func(t *testing.T) { envoyHeaders(t, newSite(t, p)) })
	t.Run("hits", func(t *testing.T) { envoyHits(t, newSite(t, p)) })
	t.Run("responses that cost", func(t *testing.T) { envoyCosts(t, newSite(t, p)) })
	t.Run("connections", func(t *testing.T) { envoyConnections(t, newSite(t, p)) })
}

// envoyHeaders holds the headers of admitted and denied requests.
func envoyHeaders(t *testing.T, s *site) {
	awayFromMidnight(t)
	for i := range smallNumber {
		a := s.get(smallPath, "headers")
		have := a.header
		limit, left := have.Get("X-RateLimit-Limit"), have.Get("X-RateLimit-Remaining")
		denied := i >= smallLimit
		if want := fmt.Sprint(max(smallLimit-1-i, 0)); limit != "10, 5000;w=3600, 10;w=86400" || left != want {
			t.Errorf("request %d: limit %q, remaining %q, want 10 of the limits of the address and the key, %s", i, limit, left, want)
		}
		if denied != (a.status == http.StatusTooManyRequests) || denied != (have.Get("X-Limited-By") == "rld") ||
			denied != (have.Get("Retry-After") != "") || denied != (have.Get("X-Envoy-Ratelimited") != "") {
			t.Errorf("request %d: %d %v", i, a.status, have)
		}
		if have.Get("X-Cost") != "" {
			t.Errorf("request %d: the client gets the cost: %v", i, have)
		}
	}
}

// envoyHits holds hits_addend and limits that come with the request, and that
// no ;x avoids them.
func envoyHits(t *testing.T, s *site) {
	awayFromMidnight(t)
	for path, want := range map[string]int{
		"/v1/batch": 2, "/v1/batch/x": 2, "/v1/trial": 3, "/v1/batch;x": 0, "/v1/tokens;x": 0, "/v1/trial;x": 0,
	} {
		got := statuses(s.load(2*smallNumber, path, path, nil))
		if reached := s.taken(); reached != want || got[http.StatusOK] != want {
			t.Errorf("%s: %d requests reach the service, want %d; statuses %v", path, reached, want, got)
		}
	}
}

// envoyCosts holds apply_on_stream_done: of 20 hits a request takes 1, and its
// response 7.
func envoyCosts(t *testing.T, s *site) {
	awayFromMidnight(t)
	const path, key = "/v1/tokens", "tokens"
	for i, left := range []int{12, 4, 0} {
		if a := s.get(path, key); a.status != http.StatusOK {
			t.Fatalf("request %d: status %d, headers %v", i, a.status, a.header)
		}
		// Envoy asks after the response, and waits for no answer.
		until(t, "the response is charged", func() error {
			if got := s.remaining(t, path, key); got != left {
				return fmt.Errorf("%d hits remain, want %d", got, left)
			}
			return nil
		})
	}
	if a := s.get(path, key); a.status != http.StatusTooManyRequests {
		t.Errorf("above the limit: status %d", a.status)
	}
	if reached := s.taken(); reached != 3 {
		t.Errorf("%d requests reached the service, want 3", reached)
	}
}

// remaining returns the hits that a key has left on a path, as rld knows.
func (s *site) remaining(t *testing.T, path, key string) int {
	t.Helper()
	r, err := s.web.Get("http://" + s.rldAddr + "/v1/check?domain=web&peek=true&d=api_key:" + key + ",path:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var body struct {
		Statuses []struct {
			Remaining int `json:"remaining"`
		} `json:"statuses"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Statuses) != 1 {
		t.Fatalf("%s: %v, %+v", r.Status, err, body)
	}
	return body.Statuses[0].Remaining
}

// envoyConnections holds the network filter: it closes connections above the
// limit, and all while rld does not answer.
func envoyConnections(t *testing.T, s *site) {
	awayFromMidnight(t)
	count := func(n int) (open int) {
		for range n {
			if s.connects(t) {
				open++
			}
		}
		return open
	}
	if got := count(smallNumber); got != smallLimit {
		t.Errorf("%d of %d connections reach the service, want %d", got, smallNumber, smallLimit)
	}
	s.rld.kill(t)
	if got := count(3); got != 0 {
		t.Errorf("%d connections reach the service without rld", got)
	}
}

// connects reports whether the service answers on a new connection to the TCP
// listener.
func (s *site) connects(t *testing.T) bool {
	t.Helper()
	conn, err := net.Dial("tcp", s.tcpAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n") // it may be closed
	buf := make([]byte, 15)
	n, _ := conn.Read(buf)
	return strings.HasPrefix(string(buf[:n]), "HTTP/1.1 200")
}
