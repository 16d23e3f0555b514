package main

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// TestLimitsExitCodes: 0 done, 1 refused, 3 not in force everywhere yet, 4
// unknown. 2 and 64 are in testdata/script/limits.txtar.
func TestLimitsExitCodes(t *testing.T) {
	type answer = api.LimitsCommandAnswer
	done := answer{Done: true, Version: "9", Text: "rule x has requests=5 for 1h0m0s"}
	pending := done
	pending.Pending, pending.Waits = true, []string{"region eu: eu-1"}
	unknown := answer{}
	for _, tc := range []struct {
		name, args string
		answers    []answer // of the command, the last one again and again
		later      answer   // of its result
		refused    string
		code       int
		has        string
	}{
		{"done", "--wait 0s", []answer{done}, answer{}, "", 0, "Version 9: rule x has requests=5"},
		{"refused", "", nil, answer{}, "rule x is not known", 1, "rule x is not known"},
		{"in force later", "", []answer{pending}, done, "", 0, "Version 9: "},
		{"not waited for", "--wait 0s", []answer{pending}, pending, "", 0, "Version 9: "},
		{"in part", "--wait 1s", []answer{pending}, pending, "", 3, "it waits for region eu: eu-1"},
		{"known later", "", []answer{unknown, done}, answer{}, "", 0, "Version 9: "},
		{"unknown", "--wait 0s", []answer{unknown}, answer{}, "", 4, "repeat it with --id "},
		{"unchanged", "", []answer{{Done: true, Unchanged: true, Text: "nothing to do: as it is"}}, answer{}, "", 0, "Nothing was done: as it is."},
		{
			"whole windows", "",
			[]answer{{Done: true, Version: "9", Text: "rule x has mode=shadow", InForce: new(time.Unix(1_700_000_000, 0))}},
			answer{},
			"", 0, "What raises is in force in whole windows of the rule",
		},
		{"emergency", "", []answer{{Done: true, Emergency: true, Text: "rule x has block"}}, answer{}, "", 0, "acts at each daemon that can be reached"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var ids []string
			h := admin.New(admin.Options{
				Metrics: http.NotFoundHandler(), Ready: func() error { return nil }, Rules: func() string { return "" },
				ChangeLimits: func(_ context.Context, c api.LimitsCommandName, q api.LimitsRequest) (answer, error) {
					if ids = append(ids, q.ID); tc.refused != "" {
						return answer{}, errors.New(tc.refused)
					}
					if c != api.SetOverride || *q.Requests != 5 || q.ForSeconds != 3_600 || q.Author == "" {
						t.Errorf("%s of %+v", c, q)
					}
					return tc.answers[min(len(ids), len(tc.answers))-1], nil
				},
				LimitsCommand: func(id string) (answer, error) {
					if id != ids[0] {
						t.Errorf("result of %s, of the command %s", id, ids[0])
					}
					return tc.later, nil
				},
			})
			addr, stop := serveAdmin(h)
			defer stop()
			var out, errs strings.Builder
			args := append([]string{"limits", "set", "x", "requests=5", "--for", "1h", "--admin", addr}, strings.Fields(tc.args)...)
			code := run(args, process{out: &out, err: &errs, program: "rld"})
			if code != tc.code || !strings.Contains(out.String()+errs.String(), tc.has) {
				t.Errorf("exit code %d: %s%s; want %d with %q", code, out.String(), errs.String(), tc.code, tc.has)
			}
			for _, id := range ids {
				if id != ids[0] || !regexp.MustCompile("^[0-9a-f]{16}$").MatchString(id) {
					t.Errorf("ids %v, want one", ids)
				}
			}
		})
	}
}

// TestLimitsWithoutLog: a daemon whose control log is not open states that it
// has the limits of its files, and not that the cluster has not begun.
func TestLimitsWithoutLog(t *testing.T) {
	got := limitsText(&api.LimitsAnswer{Fault: "the control log of this daemon is not open: disk full"})
	if !strings.HasPrefix(got, "! this daemon has the limits of its files") || !strings.Contains(got, "disk full") || strings.Contains(got, "begun") {
		t.Errorf("%q", got)
	}
	if got := limitsText(&api.LimitsAnswer{}); !strings.HasPrefix(got, "The cluster has not begun") {
		t.Errorf("%q", got)
	}
}
