package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testName = regexp.MustCompile("`(Test\\w+)`")
)

// TestThreats: each row of the threat model names a test that exists.
func TestThreats(t *testing.T) {
	p := readPage(t, "docs/security.md")
	tests := testNames(t)
	rows := 0
	for line := range strings.Lines(p.text) {
		cells := strings.Split(line, " | ")
		if len(cells) != 6 || strings.HasPrefix(line, "| asset ") {
			continue
		}
		rows++
		names := testName.FindAllStringSubmatch(cells[4], -1)
		if len(names) == 0 {
			t.Errorf("%s: no test holds this row: %s", p.name, line)
		}
		for _, n := range names {
			if !tests[n[1]] {
				t.Errorf("%s: there is no test %s; the row: %s", p.name, n[1], line)
			}
		}
	}
	if rows == 0 {
		t.Errorf("%s has no table with six columns", p.name)
	}
}

// testNames returns the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	out := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, found := range testFunc.FindAllSubmatch(data, -1) {
			out[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
