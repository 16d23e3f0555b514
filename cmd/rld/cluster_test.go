package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// controlled is the admin listener of a daemon whose control log answers in a
// given way. It counts the requests to begin.
type controlled struct {
	init     func(n int) (api.InitAnswer, error)
	recover  api.RecoverAnswer
	cluster  api.ClusterState
	requests int
}

func (c *controlled) run(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	h := admin.New(admin.Options{
		Metrics: http.NotFoundHandler(), Ready: func() error { return nil }, Rules: func() string { return "" },
		InitCluster: func(api.InitRequest) (api.InitAnswer, error) {
			c.requests++
			return c.init(c.requests)
		},
		RecoverCluster: func(context.Context, api.RecoverRequest) (api.RecoverAnswer, error) { return c.recover, nil },
		Cluster:        func() api.ClusterAnswer { return api.ClusterAnswer{Cluster: &c.cluster} },
	})
	addr, stop := serveAdmin(h)
	defer stop()
	var stdout, stderr strings.Builder
	code = run(append(args, "--admin", addr), process{out: &stdout, err: &stderr, program: "rld"})
	return code, stdout.String(), stderr.String()
}

// TestClusterExitCodes: 0 done, 1 refused, 3 not everywhere yet, 4 unknown. 2
// and 64 are in testdata/script/cluster.txtar.
func TestClusterExitCodes(t *testing.T) {
	begun := api.InitAnswer{Cluster: api.ClusterState{Begun: true, ID: "c1", BegunAt: new(time.Unix(1_700_000_000, 0).UTC())}}
	missing := api.InitAnswer{Missing: []string{"a daemon of region eu with a state.dir"}}
	asked := api.InitAnswer{UnderWay: true}
	peer := func(version string) api.RecoverAnswer {
		return api.RecoverAnswer{Recovery: 2, Cluster: api.ClusterState{Peers: []api.ClusterDaemon{{Name: "us-1", Version: version}}}}
	}
	self := api.ClusterDaemon{Name: "us-0", Region: "us", ID: "a1", Self: true, Role: api.RoleVoter, State: "live"}
	lost := api.RecoverAnswer{Recovery: 1, DryRun: true, Cluster: api.ClusterState{Daemon: self, Voters: []api.ClusterDaemon{
		self, {Region: "eu", ID: "e1", Role: api.RoleVoter, State: "not live"},
	}}}
	for _, tc := range []struct {
		name, args string
		c          controlled
		code       int
		has        string
	}{
		{"done", "init", controlled{init: func(int) (api.InitAnswer, error) { return begun, nil }}, 0, "Cluster c1 began at"},
		{"done later", "init --wait 10s", controlled{init: func(n int) (api.InitAnswer, error) {
			return []api.InitAnswer{missing, asked, begun}[min(n-1, 2)], nil
		}}, 0, "Cluster c1 began at"},
		{"missing", "init --wait 0s", controlled{init: func(int) (api.InitAnswer, error) { return missing, nil }}, 1, "missing a daemon of region eu"},
		{"refused", "init --wait 1h", controlled{init: func(int) (api.InitAnswer, error) {
			return api.InitAnswer{}, errors.New("cluster.founders is not set")
		}}, 1, "cluster.founders is not set"},
		{"under way", "init --wait 0s", controlled{init: func(int) (api.InitAnswer, error) { return asked, nil }}, 4, "repeat the command"},
		{"recovered", "recover --yes us-0", controlled{recover: peer("2.7")}, 0, "Recovery 2 began"},
		{
			"recovered later", "recover --yes us-0",
			controlled{recover: peer("1.9"), cluster: peer("2.8").Cluster},
			0, "Recovery 2 began",
		},
		{"voters that are not live", "recover", controlled{recover: lost}, 0, "If none of those that are not live comes back, add --yes us-0."},
		{"their rows", "recover", controlled{recover: lost}, 0, "\n-        eu       voter   not live   -         -       e1\n"},
		{"recovered in part", "recover --yes us-0 --wait 0s", controlled{recover: peer("1.9")}, 3, "us-1 do not follow it yet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := tc.c.run(t, slices.Concat([]string{"cluster"}, strings.Fields(tc.args))...)
			if code != tc.code || !strings.Contains(out+errs, tc.has) {
				t.Errorf("exit code %d: %s%s; want %d with %q", code, out, errs, tc.code, tc.has)
			}
		})
	}
}

// A backup without rules names what is not in it.
func TestBackupText(t *testing.T) {
	b := api.Backup{Version: "1", Cluster: "c"}
	if got := backupText("a.json", &b); !strings.Contains(got, "0 files") || !strings.Contains(got, "no rules") {
		t.Errorf("%q: want that it has no rules", got)
	}
	b.Files = []api.LimitsFile{{}}
	if got := backupText("a.json", &b); !strings.Contains(got, "1 file,") || strings.Contains(got, "no rules") {
		t.Errorf("%q: want one file and no warning", got)
	}
}
