package admin_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// TestUnencodableNumbersAreUnknown: a number that JSON cannot carry becomes
// null.
func TestUnencodableNumbersAreUnknown(t *testing.T) {
	nan := math.NaN()
	given := api.StatusAnswer{
		Daemon:  api.DaemonState{DaemonRef: api.DaemonRef{Region: "us", Name: "us-0"}, PeerOffsetSeconds: &nan},
		Regions: []api.RegionState{{Region: "eu", StalenessSeconds: &nan, Members: []api.MemberState{{Name: "eu-0", StalenessSeconds: &nan}}}},
		Worst:   &api.RuleUse{Rule: "login", Overage: new(0.5), Bound: &nan, DeniedPerSecond: &nan},
		Denied:  &api.RuleUse{Rule: "user", DeniedPerSecond: new(7.0)},
	}
	o := options()
	o.Status = func() api.StatusAnswer { return given }
	w := get(admin.New(o), "GET", "/v1/status")
	var got api.StatusAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v: %d %s", err, w.Code, w.Body)
	}
	if got.At.IsZero() {
		t.Error("the answer has no time")
	}
	want := api.StatusAnswer{
		At: got.At, Daemon: api.DaemonState{DaemonRef: given.Daemon.DaemonRef},
		Regions:  []api.RegionState{{Region: "eu", Members: []api.MemberState{{Name: "eu-0"}}}},
		Breakers: []api.Breaker{}, Degraded: []api.DegradedState{},
		Worst:  &api.RuleUse{Rule: "login", Overage: new(0.5)},
		Denied: &api.RuleUse{Rule: "user", DeniedPerSecond: new(7.0)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if given.Regions[0].StalenessSeconds == nil || given.Regions[0].Members[0].StalenessSeconds == nil || given.Worst.Bound == nil {
		t.Error("the handler changed the value of the daemon")
	}
}
