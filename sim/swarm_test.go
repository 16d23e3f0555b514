package sim

import (
	"testing"
)

// TestSwarm plays swarm runs, each twice. Those in which limits have rights are
// played under the naive rule too, which must not always keep to them: else they
// would put nothing to the test.
func TestSwarm(t *testing.T) {
	runs := uint64(60)
	exceeded := 0
	if testing.Short() {
		runs = 20
	}
	for seed := range runs {
		r, err := RunTwice(Draw(seed), Options{})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			if crash, ok := err.(*CrashError); ok {
				t.Logf("%s", crash.Stack)
			}
			continue
		}
		if r.Code() != ExitFine {
			t.Errorf("rld sim swarm --runs 1 --seed %d: exit %d, pending %q, %v", seed, r.Code(), r.Pending, violated(r))
		}
		e, _, err := Naively(seed)
		if err != nil {
			t.Error(err)
		}
		if e.Windows > 0 {
			exceeded++
		}
	}
	t.Logf("the naive rule exceeded the rights in %d of %d runs", exceeded, runs)
	if exceeded == 0 {
		t.Error("the naive rule never exceeded what rights sum to")
	}
}

// violated lists the auditors that found something.
func violated(r *Result) []Audit {
	var out []Audit
	for _, a := range r.Auditors {
		if a.Violations > 0 {
			out = append(out, a)
		}
	}
	return out
}
