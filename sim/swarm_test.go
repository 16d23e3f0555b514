package sim

import (
	"testing"
)

// TestSwarm plays swarm runs, each twice.
func TestSwarm(t *testing.T) {
	runs := uint64(200)
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
