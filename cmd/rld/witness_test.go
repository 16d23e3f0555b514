package main

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/server"
	"github.com/georld/rld/server/admin/api"
)

// The texts of the control log and of the members name a witness.
func TestWitnessTexts(t *testing.T) {
	d := api.ClusterDaemon{Region: "witness", Name: "witness-0", ID: "1", Role: api.RoleVoter, VoterOnly: true}
	for role, want := range map[api.ClusterDaemonRole]string{
		api.RoleVoter: "voter only", api.RoleLeader: "leader, voter only", api.RoleFollower: "follower, voter only",
	} {
		if d.Role = role; roleText(&d) != want {
			t.Errorf("%s: %q, want %q", role, roleText(&d), want)
		}
	}
	d.VoterOnly = false
	if got := roleText(&d); got != string(d.Role) {
		t.Errorf("%q, want %s", got, d.Role)
	}
	o := checkOptions{addr: "127.0.0.1:8081"}
	if got := o.explain(status.Error(codes.Unavailable, server.ErrWitness.Error())); !strings.Contains(got.Error(), "control.voter: only") {
		t.Errorf("rld check: %v, want the setting", got)
	}
	c := api.ClusterState{Begun: true, Daemon: api.ClusterDaemon{Region: "witness", Name: "witness-0", VoterOnly: true}}
	a := api.StatusAnswer{Cluster: &c, Regions: []api.RegionState{{Region: "witness", Self: true}}}
	if got := statusText(&a); !strings.Contains(got, witnessText) || !strings.Contains(got, "own region; witness\n") {
		t.Errorf("rld status:\n%s\nwant that it is a witness", got)
	}
	if got := budgetQuery(nil, budgetTable).text(&api.BudgetAnswer{VoterOnly: true}); !strings.HasPrefix(got, witnessText) {
		t.Errorf("rld budget:\n%s\nwant that it is a witness", got)
	}
	for _, m := range []api.Member{{VoterOnly: true}, {VoterOnly: true, Self: true}} {
		if got := membersTable(&api.MembersAnswer{Members: []api.Member{m}}); !strings.Contains(got, "voter only") {
			t.Errorf("members:\n%s\nwant voter only", got)
		}
	}
}
