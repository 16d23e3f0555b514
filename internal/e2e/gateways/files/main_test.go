package files

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the rld under test, built from this tree.
var binary string

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rld-files-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "files:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "rld")
	build := exec.Command("go", "build", "-o", binary, "./cmd/rld")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "files: building rld: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
