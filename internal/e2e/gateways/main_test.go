//go:build e2e

package gateways

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
	dir, err := os.MkdirTemp("", "rld-gateways-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateways:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "rld")
	build := exec.Command("go", "build", "-o", binary, "../../../cmd/rld")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "gateways: building rld: %v\n%s", err, out)
		return 1
	}
	stop := startParent()
	defer stop()
	return m.Run()
}
