//go:build e2e

package e2e

import (
	"crypto/x509"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/internal/certs/certstest"
)

// grpcurlModule is the version of grpcurl that calls the daemon where none is
// installed.
const grpcurlModule = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3"

// grpcurl returns the path of grpcurl, and skips the test where there is none
// to be had.
func grpcurl(t *testing.T, dir string) string {
	t.Helper()
	if path, err := exec.LookPath("grpcurl"); err == nil {
		return path
	}
	cmd := exec.CommandContext(t.Context(), "go", "install", grpcurlModule)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOBIN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("grpcurl is not installed, and cannot be: %v\n%s", err, out)
	}
	return filepath.Join(dir, "grpcurl")
}

// TestCallers runs a daemon with TLS and tokens, and calls it with curl and
// grpcurl: with right, wrong and missing credentials.
func TestCallers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	grpcurl := grpcurl(t, dir)
	certstest.New(t, nil).Write(t, dir, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} })

	// Tokens, as an operator makes them.
	entries := "tokens:\n"
	token := func(args ...string) string {
		t.Helper()
		token, entry := newToken(t, args...)
		entries += entry
		return token
	}
	right := token("--name", "edge", "--domain", "edge")
	other := token("--name", "other", "--domain", "cart")
	reader := token("--name", "eyes", "--domain", "*", "--verb", "read")
	slow := token("--name", "slow", "--domain", "edge", "--rate", "0.001")
	if err := os.WriteFile(file("tokens.yaml"), []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}

	out, err := os.Create(file("banner"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	log, err := os.Create(file("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(binary, "serve", "--grpc-reflection", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
		"--grpc-tls-cert-file", file("cert.pem"), "--grpc-tls-key-file", file("key.pem"),
		"--http-tls-cert-file", file("cert.pem"), "--http-tls-key-file", file("key.pem"),
		"--auth-tokens-file", file("tokens.yaml"))
	cmd.Env, cmd.Stdout, cmd.Stderr = environ(), out, log
	if err := startCommand(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var at []string
	await.True(t, "the daemon serves", func() bool {
		text, _ := os.ReadFile(file("log"))
		at = regexp.MustCompile(`msg=serving grpc=(\S+) http=(\S+)`).FindStringSubmatch(string(text))
		return at != nil
	})

	const query = "/v1/check?domain=edge&tier=free&user_id=abc"
	const message = `{"domain": "edge", "descriptors": [{"entries": [{"key": "tier", "value": "free"}, {"key": "user_id", "value": "abc"}]}]}`
	for _, c := range []struct {
		name, token   string
		calls         int
		peek          bool
		http          string
		grpc, meaning string
	}{
		{"right", right, 1, false, "200", "", `"ALLOWED"`},
		{"missing", "", 1, false, "401", "Unauthenticated", "no credentials"},
		{"wrong", "rld_wrong", 1, false, "401", "Unauthenticated", "is not known here"},
		{"wrong domain", other, 1, false, "403", "PermissionDenied", "may not call this domain"},
		{"wrong verb", reader, 1, false, "403", "PermissionDenied", "may only read"},
		{"peek", reader, 1, true, "200", "", `"ALLOWED"`},
		{"rate", slow, 2, false, "429", "ResourceExhausted", "no limit was asked"},
	} {
		header, url, body := "x-none: 1", "https://"+at[2]+query, message
		if c.token != "" {
			header = "authorization: Bearer " + c.token
		}
		if c.peek {
			url, body = url+"&peek=true", strings.Replace(body, "{", `{"peek": true, `, 1)
		}
		var got []byte
		for range c.calls {
			got, err = exec.CommandContext(t.Context(), "curl", "-sS", "--cacert", file("ca.pem"), "-H", header,
				"-w", "\n%{http_code} %{header_json}", url).CombinedOutput()
		}
		if err != nil || !strings.Contains(string(got), "\n"+c.http+" ") || !strings.Contains(string(got), c.meaning) {
			t.Errorf("curl, %s: %v, want %s with %q:\n%s", c.name, err, c.http, c.meaning, got)
		}
		if strings.Contains(string(got), "www-authenticate") != (c.http == "401") {
			t.Errorf("curl, %s: WWW-Authenticate is with 401 alone:\n%s", c.name, got)
		}
		for range c.calls {
			got, err = exec.CommandContext(t.Context(), grpcurl, "-cacert", file("ca.pem"), "-H", header, "-d", body,
				"-import-path", "../../proto", "-proto", "rld/v1/rld.proto",
				at[1], "rld.v1.RateLimiter/Check").CombinedOutput()
		}
		if (err == nil) != (c.grpc == "") || !strings.Contains(string(got), c.meaning) ||
			c.grpc != "" && !strings.Contains(string(got), "Code: "+c.grpc) {
			t.Errorf("grpcurl, %s: %v, want %q with %q:\n%s", c.name, err, c.grpc, c.meaning, got)
		}
	}
	// Without TLS, and without trust in the authority.
	for _, args := range [][]string{{"-sSf", "http://" + at[2] + query}, {"-sS", "https://" + at[2] + query}} {
		if got, err := exec.CommandContext(t.Context(), "curl", args...).CombinedOutput(); err == nil {
			t.Errorf("curl %v succeeds:\n%s", args, got)
		}
	}
	text, err := os.ReadFile(file("log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{right, other, reader, slow} {
		if strings.Contains(string(text), token) {
			t.Error("a token is in the log")
		}
	}
	if n := strings.Count(string(text), "reason=no_token"); n != 1 {
		t.Errorf("%d lines about missing tokens, want one:\n%s", n, text)
	}
}
