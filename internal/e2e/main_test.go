//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the rld under test, built from this tree.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(attackEnv) != "" {
		return m.Run() // without a daemon
	}
	dir, err := os.MkdirTemp("", "rld-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "rld")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/rld")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: building rld: %v\n%s", err, out)
		return 1
	}
	stop := startParent()
	defer stop()
	return m.Run()
}
