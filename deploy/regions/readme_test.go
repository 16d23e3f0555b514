package regions_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/config"
)

// material runs the commands of the README that make secret, keys and
// certificates, and returns the flags that name the files. Without openssl
// there are no certificates, and streams are plain.
func material(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(data), "```sh\n")
	script, _, ok := strings.Cut(script, "```")
	if !ok {
		t.Fatal("README.md holds no commands")
	}
	_, lacking := exec.LookPath("openssl")
	if lacking != nil {
		t.Log("there is no openssl here: the certificates are left out")
		script, _, _ = strings.Cut(script, "openssl ")
	}
	dir := t.TempDir()
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the commands of README.md: %v\n%s", err, out)
	}
	flags := map[string]string{"cluster-secret-file": "secret", "swim-keys-file": "swim-keys"}
	if lacking == nil {
		flags["peer-tls-cert"], flags["peer-tls-key"], flags["peer-tls-ca"] = "tls.crt", "tls.key", "ca.crt"
	}
	for flag, name := range flags {
		flags[flag] = filepath.Join(dir, name)
	}
	return flags
}

// The files that the commands of the README make are taken without a warning,
// next to each region's settings.
func TestReadme(t *testing.T) {
	paths, err := files(".")
	if err != nil {
		t.Fatal(err)
	}
	flags := material(t)
	if flags["peer-tls-cert"] == "" {
		t.Skip("there is no openssl here")
	}
	flags["name"], flags["state-dir"] = "daemon-0", t.TempDir()
	for region, path := range paths {
		c, err := config.Check(config.Sources{File: path, Flags: flags}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Faults) > 0 || len(c.Warnings) > 0 {
			t.Errorf("%s: faults: %v, warnings: %q", region, c.Faults, c.Warnings)
		}
	}
}
