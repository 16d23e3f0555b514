//go:build e2e

package gateways

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestModules tests a newer Caddy with the files that Caddy of Debian runs. It
// builds Caddy from the modules of folder modules.
func TestModules(t *testing.T) {
	if os.Getenv("RLD_E2E_LONG") == "" {
		t.Skip("building Caddy takes minutes: make e2e-long does it")
	}
	p := caddy
	p.name, p.path = "caddy from its module", t.TempDir()
	p.version = "go version -m \"$(command -v caddy)\" | grep 'caddyserver/caddy/v2.v2'"
	build(t, filepath.Join(p.path, "caddy"), "github.com/caddyserver/caddy/v2/cmd/caddy")
	everything(t, p)
}

// build builds a program from the modules of folder modules.
func build(t *testing.T, out, pkg string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	begin := time.Now()
	cmd := exec.CommandContext(ctx, "go", "build", "-C", "modules", "-o", out, pkg)
	if log, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, log)
	}
	t.Logf("%s built in %.0f s", pkg, time.Since(begin).Seconds())
}
