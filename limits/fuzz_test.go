package limits

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
)

// FuzzParse feeds the reader anything. It must not panic, must return rules or
// errors but never both or neither, must keep to its bounds, and must say the
// same of the same file twice.
func FuzzParse(f *testing.F) {
	scripts, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(scripts) == 0 {
		f.Fatalf("no scripts for seeds: %v", err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		datadriven.RunTestFromStringAny(f, string(text), func(_ testing.TB, d *datadriven.TestData) string {
			f.Add([]byte(d.Input))
			return d.Expected
		})
	}
	f.Add([]byte("\xff\xfe"))
	f.Fuzz(func(t *testing.T, data []byte) {
		files := []File{{Name: "f.yaml", Data: data}, {Name: "g.yaml", Data: []byte("domain: g")}}
		set, faults := Parse(files, Options{MergeDomains: true})
		if (set == nil) != (faults.Err() != nil) {
			t.Fatalf("set %v beside %v", set, faults.Err())
		}
		if len(faults) > 2*maxFaults+2 {
			t.Fatalf("%d diagnostics", len(faults))
		}
		_, again := Parse(files, Options{MergeDomains: true})
		if diff := cmp.Diff(faults, again); diff != "" {
			t.Fatalf("read twice: %s", diff)
		}
		_ = faults.String()
		if set == nil {
			return
		}
		if n := len(set.Rules()); n > MaxRules {
			t.Fatalf("%d rules", n)
		}
		_ = Describe(set)
	})
}
