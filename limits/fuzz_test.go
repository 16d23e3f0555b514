package limits

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/rules"
)

// fuzzCluster reads files as a daemon of a cluster does: it rejects at least
// the files that others reject, and every accepted right has a place.
func fuzzCluster(t *testing.T, files []File, alone *rules.Set) {
	o := Options{MergeDomains: true, Regions: []string{"us-east", "eu-west"}, Daemons: 6, DaemonsOfRegion: 3}
	set, faults := Parse(files, o)
	if (set == nil) != (faults.Err() != nil) {
		t.Fatalf("in a cluster: set %v beside %v", set, faults.Err())
	}
	if set == nil {
		return
	}
	if alone == nil {
		t.Fatal("taken in a cluster and refused elsewhere")
	}
	for i, r := range set.Rules() {
		l := r.Limit
		if l == nil {
			continue
		}
		held := l.HasRights() || l.Homed()
		if held != (l.Placed != rules.Auto) || alone.Rules()[i].Limit.Placed != rules.Auto {
			t.Fatalf("%s: has rights or a home: %v, placed %s", r.Path, held, l.Placed)
		}
		if l.Homed() != (held && l.Placed != rules.Spread) {
			t.Fatalf("%s: homed: %v, placed %s", r.Path, l.Homed(), l.Placed)
		}
		if l.Home != "" && (!l.Homed() || l.HomeInRegion() || !o.knows(l.Home)) {
			t.Fatalf("%s: home in %q", r.Path, l.Home)
		}
		if reserve := l.ReserveLimit(2); (reserve.Requests > 0) != (l.OnFailure == rules.Share && l.Requests > 0) ||
			l.Requests > 0 && l.OwnerLimit(2).Requests == 0 {
			t.Fatalf("%s: floor %d, home %d of %d", r.Path, reserve.Requests, l.OwnerLimit(2).Requests, l.Requests)
		}
		sum := uint64(0)
		for _, w := range l.Weights {
			sum += uint64(w.Share)
		}
		if sum != 0 && (sum != uint64(rules.Whole) || !l.HasRights()) {
			t.Fatalf("%s: weights %v", r.Path, l.Weights)
		}
	}
}

// FuzzParse feeds the reader arbitrary bytes. It must not panic, must return
// rules or errors but never both or neither, must keep to its bounds, and must
// return the same for the same file twice.
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
		if len(faults) > 3*101 {
			t.Fatalf("%d diagnostics", len(faults))
		}
		_, again := Parse(files, Options{MergeDomains: true})
		if diff := cmp.Diff(faults, again); diff != "" {
			t.Fatalf("read twice: %s", diff)
		}
		_ = faults.String()
		fuzzCluster(t, files, set)
		if set == nil {
			return
		}
		if n := len(set.Rules()); n > MaxRules {
			t.Fatalf("%d rules", n)
		}
		_ = Describe(set)
	})
}
