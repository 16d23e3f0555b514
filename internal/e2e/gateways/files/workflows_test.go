package files

import (
	"io"
	"path/filepath"
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
	}
}
