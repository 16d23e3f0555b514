package node

import (
	"slices"
	"testing"
)

// TestReplacedLimits: every limit that matched replaces those that it names,
// whatever the order of the descriptors, also one that is unlimited or is
// replaced itself.
func TestReplacedLimits(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, `
domain: edge
descriptors:
  - {key: a, rate_limit: {unit: minute, requests_per_unit: 5, name: a, replaces: [{name: b}]}}
  - {key: b, rate_limit: {unit: minute, requests_per_unit: 0, name: b, replaces: [{name: c}]}}
  - {key: c, rate_limit: {unit: minute, requests_per_unit: 0, name: c}}
  - {key: free, rate_limit: {unlimited: true, replaces: [{name: c}]}}
`)
	for _, tt := range []struct {
		call    []string
		allowed bool
	}{
		{[]string{"a=1", "b=1"}, true},
		{[]string{"b=1", "c=1"}, false},
		{[]string{"a=1", "c=1"}, false},
		{[]string{"a=1", "b=1", "c=1"}, true},
		{[]string{"c=1", "a=1", "b=1"}, true},
		{[]string{"c=1", "b=1", "a=1"}, true},
		{[]string{"free=1", "c=1"}, true},
		{[]string{"c=1", "free=1"}, true},
		{[]string{"free=1", "b=1"}, false},
	} {
		if err := r.ask("edge", 1, tt.call...); err != nil || r.call.Decision.Allowed != tt.allowed {
			t.Errorf("%v: %v, %+v", tt.call, err, r.call.Decision)
		}
	}
}

// TestSeveralQuotas: a call is denied when all of its quotas are over, and one
// that is over counts nothing.
func TestSeveralQuotas(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, `
domain: edge
descriptors:
  - {key: small, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 2}}
  - {key: large, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 5, algorithm: sliding_log}}
`)
	var allowed []bool
	for range 7 {
		if err := r.ask("edge", 1, "small=1", "large=1"); err != nil {
			t.Fatal(err)
		}
		allowed = append(allowed, r.call.Decision.Allowed)
	}
	if want := []bool{true, true, true, true, true, false, false}; !slices.Equal(allowed, want) {
		t.Errorf("allowed %v, want %v", allowed, want)
	}
	for i := range r.call.Statuses {
		if e := r.node.Explain(r.instant(), &r.call.Hits()[i]); e.Used != []uint64{2, 5}[i] {
			t.Errorf("quota %d counts %+v", i, e)
		}
	}
}
