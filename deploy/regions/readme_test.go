package regions_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/config"
)

// materials are the files of the README, in the folder where its commands ran.
type materials struct{ dir string }

// material runs the commands of the README that make secret, keys and
// certificates.
func material(t *testing.T) materials {
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
	program := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/rld").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := materials{dir: t.TempDir()}
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "PATH="+program+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the commands of README.md: %v\n%s", err, out)
	}
	return m
}

// flags returns the flags that name a daemon and its files.
func (m materials) flags(region, name string) map[string]string {
	flags := map[string]string{
		"cluster-secret-file": "secret", "swim-keys-file": "swim-keys",
		"peer-tls-cert": "certs/" + region + "/" + name + "/tls.crt",
		"peer-tls-key":  "certs/" + region + "/" + name + "/tls.key",
		"peer-tls-ca":   "certs/" + region + "/" + name + "/ca.crt",
	}
	for flag, path := range flags {
		flags[flag] = filepath.Join(m.dir, path)
	}
	flags["name"] = name
	return flags
}

// The files that the commands of the README make are taken without a warning,
// next to each region's settings, but that the networks of the regions are left
// to the user.
func TestReadme(t *testing.T) {
	paths, err := files(".")
	if err != nil {
		t.Fatal(err)
	}
	m := material(t)
	for region, path := range paths {
		flags := m.flags(region, region+"-0")
		flags["state-dir"] = t.TempDir()
		c, err := config.Check(config.Sources{File: path, Flags: flags}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		warnings := slices.DeleteFunc(c.Warnings, func(w string) bool { return strings.Contains(w, "no cidrs") })
		if len(c.Faults) > 0 || len(warnings) > 0 {
			t.Errorf("%s: faults: %v, warnings: %q", region, c.Faults, warnings)
		}
	}
}
