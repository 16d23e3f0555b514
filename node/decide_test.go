package node

import (
	"testing"

	"github.com/georld/rld/rules"
)

// TestWouldDeny holds that a call would be denied if it is denied without the
// shadow mode of its rules, and only then.
func TestWouldDeny(t *testing.T) {
	for bits := range 1 << 9 { // of three statuses: over, shadow, quota
		for _, all := range []bool{false, true} {
			statuses := func(shadow bool) []Status {
				var out []Status
				for i := range 3 {
					b := bits >> (3 * i)
					l := &rules.Limit{Shadow: shadow && b&2 != 0, Quota: b&4 != 0}
					out = append(out, Status{Limit: l, Over: b&1 != 0})
				}
				return out
			}
			p := Policy{AllQuotas: all}
			got, enforced := Decide(statuses(true), p), Decide(statuses(false), p)
			if enforced.WouldDeny {
				t.Fatalf("%09b: denied, and would be", bits)
			}
			if want := got.Allowed && !enforced.Allowed; got.WouldDeny != want {
				t.Errorf("%09b, all quotas %v: %+v, enforced %+v", bits, all, got, enforced)
			}
		}
	}
}
