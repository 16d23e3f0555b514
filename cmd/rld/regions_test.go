package main

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// TestRegionExitCodes: 0 done, 1 refused, 3 not settled yet, 4 unknown, 64
// wrong usage. Commands that remove something need --yes and the name.
func TestRegionExitCodes(t *testing.T) {
	type answer = api.ChangeAnswer
	done := answer{Done: true, Version: "9", Text: "region eu drains"}
	pending := done
	pending.Pending, pending.Waits = true, []string{"region ap"}
	for _, tc := range []struct {
		name, args string
		answers    []answer // of the command, the last one again and again
		later      answer   // of its result
		refused    string
		code       int
		has        string
		want       api.ChangeRequest // what is sent, without id and author
	}{
		{"done", "region drain eu --reason why", []answer{done}, answer{}, "", 0, "Version 9: region eu drains.", api.ChangeRequest{Name: "eu", Reason: "why"}},
		{"refused", "region weight eu --weight 20% --force", nil, answer{}, "not known", 1, "not known", api.ChangeRequest{Name: "eu", Weight: 0.2, Force: true}},
		{"settled later", "region add eu --weight 50%", []answer{pending}, done, "", 0, "Version 9: ", api.ChangeRequest{Name: "eu", Weight: 0.5}},
		{"in part", "region drain eu --wait 1s", []answer{pending}, pending, "", 3, "it waits for region ap", api.ChangeRequest{Name: "eu", WaitSeconds: 1}},
		{"not waited for", "region drain eu --wait 0s", []answer{pending}, pending, "", 0, "Version 9: ", api.ChangeRequest{Name: "eu"}},
		{"unknown", "region drain eu --wait 0s", []answer{{}}, answer{}, "", 4, "repeat it with --id ", api.ChangeRequest{Name: "eu"}},
		{"tried", "region remove eu --stopped", []answer{{DryRun: true, Text: "region eu removed"}}, answer{}, "", 0, "add --yes eu", api.ChangeRequest{Name: "eu", Stopped: true, DryRun: true}},
		{
			"tried without a leader", "region remove eu --stopped",
			[]answer{{DryRun: true, Text: "region eu removed", Leaderless: "the control log has no leader"}},
			answer{},
			"", 0, "It needs a leader, and the control log has no leader.",
			api.ChangeRequest{Name: "eu", Stopped: true, DryRun: true},
		},
		{"removed", "region remove eu --stopped --yes eu", []answer{done}, answer{}, "", 0, "Version 9: ", api.ChangeRequest{Name: "eu", Stopped: true}},
		{"a daemon", "daemon remove eu-1 --stopped --yes eu-1", []answer{done}, answer{}, "", 0, "Version 9: ", api.ChangeRequest{Name: "eu-1", Stopped: true}},
		{
			"a strict recovery is tried", "strict recover eu --stopped eu-0,eu-1",
			[]answer{{DryRun: true, Text: "region eu: its strict voters"}},
			answer{},
			"", 0, "If one of eu-0, eu-1 comes back with its state, strict limits are exceeded. If none does, add --yes eu.",
			api.ChangeRequest{Name: "eu", Stopped: true, Voters: []string{"eu-0", "eu-1"}, DryRun: true},
		},
		{
			"a strict recovery", "strict recover eu --stopped eu-0 --stopped eu-1 --yes eu",
			[]answer{done},
			answer{},
			"", 0, "Version 9: ",
			api.ChangeRequest{Name: "eu", Stopped: true, Voters: []string{"eu-0", "eu-1"}},
		},
		{
			"voters are replaced later", "strict recover eu --stopped eu-0 --yes eu --wait 1s",
			[]answer{pending},
			pending, "", 3, "it waits for region ap",
			api.ChangeRequest{Name: "eu", Stopped: true, Voters: []string{"eu-0"}, WaitSeconds: 1},
		},
		{"a strict recovery of nobody", "strict recover eu --yes eu", nil, answer{}, "", 64, "stopped", api.ChangeRequest{}},
		{"another name", "region remove eu --stopped --yes us", nil, answer{}, "", 64, `--yes "us" is not the name "eu"`, api.ChangeRequest{}},
		{"no weight", "region add eu", nil, answer{}, "", 64, "weight", api.ChangeRequest{}},
		{"all weight", "region add eu --weight 100%", nil, answer{}, "", 64, "less than 100%", api.ChangeRequest{}},
		{"a bad weight", "region add eu --weight 20", nil, answer{}, "", 64, "is not a percentage", api.ChangeRequest{}},
		{"no name", "region drain", nil, answer{}, "", 64, "0 names given, want one", api.ChangeRequest{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var ids []string
			h := admin.New(admin.Options{
				Metrics: http.NotFoundHandler(), Ready: func() error { return nil }, Rules: func() string { return "" },
				ChangeCluster: func(_ context.Context, _ api.ClusterCommandName, q api.ChangeRequest) (answer, error) {
					ids = append(ids, q.ID)
					q.ID, q.Author = "", ""
					if !reflect.DeepEqual(q, tc.want) {
						t.Errorf("request %+v, want %+v", q, tc.want)
					}
					if tc.refused != "" {
						return answer{}, errors.New(tc.refused)
					}
					return tc.answers[min(len(ids), len(tc.answers))-1], nil
				},
				ClusterCommand: func(string) (answer, error) { return tc.later, nil },
			})
			addr, stop := serveAdmin(h)
			defer stop()
			var out, errs strings.Builder
			code := run(append(strings.Fields(tc.args), "--admin", addr), process{out: &out, err: &errs, program: "rld"})
			if code != tc.code || !strings.Contains(out.String()+errs.String(), tc.has) {
				t.Errorf("exit code %d: %s%s; want %d with %q", code, out.String(), errs.String(), tc.code, tc.has)
			}
			for _, id := range ids {
				if id != ids[0] || len(id) != 16 {
					t.Errorf("ids %v, want one", ids)
				}
			}
		})
	}
}
