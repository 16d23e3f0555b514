package admin_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/server/admin"
)

// TestOneNumberDoesNotCostTheStatus: what JSON cannot carry is not known.
func TestOneNumberDoesNotCostTheStatus(t *testing.T) {
	nan := math.NaN()
	given := admin.StatusAnswer{
		Daemon:  admin.DaemonState{DaemonRef: admin.DaemonRef{Region: "us", Name: "us-0"}, PeerOffsetSeconds: &nan},
		Regions: []admin.RegionState{{Region: "eu", StalenessSeconds: &nan, Members: []admin.MemberState{{Name: "eu-0", StalenessSeconds: &nan}}}},
		Worst:   &admin.RuleUse{Rule: "login", Overage: new(0.5), Bound: &nan, DeniedPerSecond: &nan},
		Denied:  &admin.RuleUse{Rule: "user", DeniedPerSecond: new(7.0)},
	}
	o := options()
	o.Status = func() admin.StatusAnswer { return given }
	w := get(admin.New(o), "GET", "/v1/status")
	var got admin.StatusAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v: %d %s", err, w.Code, w.Body)
	}
	if got.At.IsZero() {
		t.Error("it does not say when")
	}
	want := admin.StatusAnswer{
		At: got.At, Daemon: admin.DaemonState{DaemonRef: given.Daemon.DaemonRef},
		Regions:  []admin.RegionState{{Region: "eu", Members: []admin.MemberState{{Name: "eu-0"}}}},
		Circuits: []admin.Circuit{}, Degraded: []admin.DegradedState{},
		Worst:  &admin.RuleUse{Rule: "login", Overage: new(0.5)},
		Denied: &admin.RuleUse{Rule: "user", DeniedPerSecond: new(7.0)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if given.Regions[0].StalenessSeconds == nil || given.Regions[0].Members[0].StalenessSeconds == nil || given.Worst.Bound == nil {
		t.Error("what the daemon keeps was changed")
	}
}
