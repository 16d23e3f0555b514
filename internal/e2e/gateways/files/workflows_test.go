package files

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
)

// TestWorkflows checks the workflows of public CI with actionlint.
func TestWorkflows(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		// Its network and shell are not used: there is no shellcheck.
		found, err := l.LintFile(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range found {
			t.Error(fault)
		}
		checkBuilds(t, path)
	}
}

// checkBuilds holds that go build asks no Git in a container: Git refuses the
// checkout, which another user owns, and the build fails.
func checkBuilds(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var w struct {
		Jobs map[string]struct {
			Container any               `json:"container"`
			Env       map[string]string `json:"env"`
		} `json:"jobs"`
	}
	readLoose(t, data, &w)
	if len(w.Jobs) == 0 {
		t.Errorf("%s has no jobs", path)
	}
	for name, job := range w.Jobs {
		if job.Container != nil && !slices.Contains(strings.Fields(job.Env["GOFLAGS"]), "-buildvcs=false") {
			t.Errorf("%s: the job %s builds in a container without GOFLAGS: -buildvcs=false", path, name)
		}
	}
}
