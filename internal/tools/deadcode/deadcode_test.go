// Package deadcode holds that programs reach all code that is not a test.
package deadcode

import (
	_ "embed" // For the list of rigs.
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the main module, seen from here.
const root = "../../.."

// module is the path of the main module.
const module = "github.com/georld/rld/"

// programs are the commands of users and operators, and the benchmarks.
var programs = []string{"./cmd/...", "./internal/bench", "./internal/mutate", "./internal/scale"}

//go:embed rigs.txt
var rigsText string

// TestReached runs deadcode over the programs. Code that none of them reaches
// is a test rig with a line in rigs.txt, or it is to be deleted.
func TestReached(t *testing.T) {
	rigs := make(map[string]bool) // by name, true once it is needed
	for line := range strings.Lines(rigsText) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, reason, _ := strings.Cut(line, " -- ")
		if reason == "" {
			t.Errorf("rigs.txt: %s has no reason: write it after \" -- \"", name)
		}
		rigs[name] = false
	}
	for _, name := range slices.Concat(unusedFunctions(t), unusedPackages(t)) {
		if _, ok := rigs[name]; ok {
			rigs[name] = true
			continue
		}
		t.Errorf("no program reaches %s: delete it, or give it a line in rigs.txt", name)
	}
	for name, needed := range rigs {
		if !needed {
			t.Errorf("rigs.txt: programs reach %s, or it is gone: delete the line", name)
		}
	}
}

// unusedFunctions returns "file: function" of each function that no program
// reaches, of the packages that a program imports.
func unusedFunctions(t *testing.T) []string {
	t.Helper()
	var names []string
	args := slices.Concat([]string{"tool", "-modfile=internal/tools/go.mod", "deadcode"}, programs)
	for _, line := range lines(t, args...) {
		place, function, ok := strings.Cut(line, ": unreachable func: ")
		if !ok {
			t.Fatalf("deadcode printed %q", line)
		}
		file, _, _ := strings.Cut(place, ":")
		names = append(names, fmt.Sprintf("%s: %s", file, function))
	}
	return names
}

// unusedPackages returns the packages with code apart from tests that no
// program imports.
func unusedPackages(t *testing.T) []string {
	t.Helper()
	used := lines(t, slices.Concat([]string{"list", "-deps"}, programs)...)
	var names []string
	for _, line := range lines(t, "list", "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", "./...") {
		if !slices.Contains(used, line) {
			names = append(names, strings.TrimPrefix(line, module))
		}
	}
	return names
}

// lines runs the go command in the root and returns the lines of its output.
func lines(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(s string) bool { return s == "" })
}
