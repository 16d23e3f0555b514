package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// TestOperatorScripts runs testdata/operator: rld explain, status, top and
// strict. A script has, beside testscript's own commands, exits, which is that
// of TestScripts for rld alone and starts no process, and the addresses of
// admin listeners: those of TestClusterScripts that speak HTTP, and
//
//	$STRICT  a daemon of three regions with strict keys, and all that can be wrong
//	$WELL    one in which nothing is
//	$PENDING the same, with an announced layout
//	$SINGLE  a daemon without a region
func TestOperatorScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/operator",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": cmdRuns},
		Setup: func(env *testscript.Env) error {
			all := adminHandlers()
			all["STRICT"], all["WELL"], all["SINGLE"] = strictHandler(nil), wellHandler(), singleHandler()
			all["PENDING"] = strictHandler(&api.NextLayout{Number: 4, WaitsFor: []api.Missing{
				{Region: "eu-west", Name: "eu-0", Why: "not_voting"}, {Region: "ap-south", Why: "no data"},
			}})
			for name, h := range all {
				addr, stop := serveAdmin(h)
				env.Defer(stop)
				env.Setenv(name, addr)
			}
			return nil
		},
	})
}

func cmdRuns(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "rld" {
		ts.Fatalf("usage: exits CODE rld ARG...")
	}
	got := run(args[2:], process{out: ts.Stdout(), err: ts.Stderr(), program: "rld"})
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

func handlerOf(o admin.Options) http.Handler {
	o.Metrics = http.NotFoundHandler()
	o.Ready, o.Rules = func() error { return nil }, func() string { return "" }
	return admin.New(o)
}

func daemonOfRegion(region, name, incarnation string) api.DaemonRef {
	return api.DaemonRef{Region: region, Name: name, Incarnation: incarnation}
}

var (
	us0 = daemonOfRegion("us-east", "us-0", "00000000000000b0")
	us1 = daemonOfRegion("us-east", "us-1", "00000000000000b1")
	red = daemonOfRegion("ap-south", "\x1b[31mred", "00000000000000c1")
)

// later is as far from the time of an answer as the test runs fast: scripts
// match it by its digits before the point.
func later(d time.Duration) *time.Time { return earlier(-d) }

// strictHandler is us-0, which does not own login.
func strictHandler(next *api.NextLayout) http.Handler {
	state := troubledStrict()
	state.Next = next
	return handlerOf(admin.Options{
		Explain: explainedStrict, Status: troubledStatus, Top: topKeys(true),
		Strict: func() api.StrictAnswer { return api.StrictAnswer{Self: us0, Strict: state} },
	})
}

func wellHandler() http.Handler {
	return handlerOf(admin.Options{
		Explain: explainedWell,
		Status: func() api.StatusAnswer {
			return api.StatusAnswer{
				Daemon: api.DaemonState{
					DaemonRef: us0, Version: "v1.2.3", UptimeSeconds: 3_725, Ready: true, LiveKeys: 1,
					MaxKeys: 1_000_000, Rules: "0000000000005eed", RuleCount: 14, PeerOffsetSeconds: new(0.0121),
				},
				Regions: []api.RegionState{
					{Region: "eu-west", StalenessSeconds: new(0.2041), Members: []api.MemberState{{Name: "eu-0", Ready: true}}},
					{Region: "us-east", Self: true, Members: []api.MemberState{{Name: "us-0", Ready: true, Self: true}}},
				},
			}
		},
		Top:    topKeys(false),
		Strict: func() api.StrictAnswer { return api.StrictAnswer{Self: us0} },
	})
}

func singleHandler() http.Handler {
	return handlerOf(admin.Options{
		Status: func() api.StatusAnswer {
			return api.StatusAnswer{Alone: true, Daemon: api.DaemonState{UptimeSeconds: 0.5, Ready: true, LiveKeys: 0, MaxKeys: 1}}
		},
		Top: func(api.TopQuery) api.TopAnswer { return api.TopAnswer{SpanSeconds: 1, Reveals: true} },
	})
}

func troubledStrict() *api.StrictState {
	return &api.StrictState{
		Layout: 3,
		Regions: []api.StrictRegion{
			{Region: "ap-south", Weight: 0.25},
			{Region: "us-east", Weight: 0.75, Voters: []api.StrictVoter{
				{Name: "us-0", Self: true, Live: true, Ready: true, Voting: new(false), WhyNot: "it waits for the snapshot of us-2"},
				{Name: "us-1", Live: true, Voting: new(true)},
				{Name: "us-2"},
			}},
		},
		Pins: []api.Pin{{Domain: "edge", Rule: "path=/login", Region: "us-east"}, {ID: "00000000000000aa", Region: "ap-south"}},
		Acceptor: &api.AcceptorState{
			WhyNot: "it waits for the snapshot of us-2", DiskLost: earlier(90 * time.Second), Keys: 12, JournalBytes: 1_234_567,
			JournalFault: "no space left on device",
		},
		Keys: 4, MaxKeys: 100_000,
		Warnings: []string{"ap-south has two daemons: on_failure applies after one failure"},
	}
}

func troubledStatus() api.StatusAnswer {
	next := troubledStrict()
	next.Next = &api.NextLayout{Number: 4}
	return api.StatusAnswer{
		Daemon: api.DaemonState{
			DaemonRef: us0, Version: "v1.2.3", UptimeSeconds: 12.3, WhyNot: "draining", Shadow: true,
			LiveKeys: 1_000, MaxKeys: 1_000, OverflowKeys: 2, ClockOffsetSeconds: 0.004, RuleCount: 1,
			LimitsFault: "limits.yaml:3: \x1b[31mno",
			Certificate: &api.CertificateState{
				Names: []string{}, NotAfter: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Soon: true, Fault: "tls.crt: \x1b[31mno",
				Peer: "eu/\x1b", PeerNotAfter: new(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
			},
		},
		Regions: []api.RegionState{
			{Region: "ap-south", Partitioned: true, PartitionedSince: earlier(90 * time.Second)},
			{Region: "us-east", Self: true, StalenessSeconds: new(0.0263), Members: []api.MemberState{
				{Name: "us-0", Self: true}, {Name: "us-1", Ready: true}, {Name: "\x1b[31mred"},
			}},
		},
		Breakers: []api.Breaker{
			{Owner: us1, State: api.BreakerOpen, Since: earlier(12 * time.Second), Calls: 50, Errors: 40},
			{Owner: red, State: api.BreakerHalfOpen, Calls: 1},
		},
		Strict: next,
		Degraded: []api.DegradedState{{
			Reason: "keys_full", Since: earlier(90 * time.Second), Answers: 400,
			Text: "raise --max-keys",
		}, {Reason: "no_rights"}},
		Worst:  &api.RuleUse{Domain: "edge", Rule: "path=/login", Name: "login", Overage: new(0.0123), Bound: new(0.02)},
		Denied: &api.RuleUse{Domain: "edge", Rule: "user\x1b", DeniedPerSecond: new(12.34)},
	}
}

func topKeys(reveals bool) func(api.TopQuery) api.TopAnswer {
	return func(api.TopQuery) api.TopAnswer {
		a := api.TopAnswer{Self: us0, SpanSeconds: 10, Reveals: reveals, Keys: []api.TopKey{
			{Domain: "edge", Rule: "user", Key: strings.Repeat("a", 32), HitsPerSecond: 20_000.4, DeniedPerSecond: 19_000, Share: new(1.0), Hot: true},
			{Domain: "edge", Rule: "path=/login", Name: "login", Key: strings.Repeat("b", 32), HitsPerSecond: 2.25},
		}}
		if reveals {
			a.HotPerSecond, a.Keys[0].Text = 10_000, "user=\x1b[31mred"
		}
		return a
	}
}

// explainedStrict knows a strict rule, endpoint, an unlimited one, staff, and
// none else.
func explainedStrict(_ context.Context, q api.ExplainQuery) (api.ExplainAnswer, error) {
	if q.Domain == "bad" {
		return api.ExplainAnswer{}, errors.New("domain is bad")
	}
	a := api.ExplainAnswer{Self: us0, Domain: q.Domain, Hits: q.Hits, Allowed: true, Shadow: true, HTTPStatus: 200}
	for _, d := range q.Descriptors {
		switch d.Entries[0].Key {
		case "endpoint":
			a.Allowed, a.RefusedBy = false, "login"
			a.Headers = []api.Header{{Name: "Retry-After", Value: "12"}, {Name: "X-Name", Value: "\x1b[31mred"}}
			a.Descriptors = append(a.Descriptors, *strictExplained())
		case "staff":
			a.Descriptors = append(a.Descriptors, api.Explained{Rule: &api.RuleRef{Path: "staff\x1b"}, WhyNoLimit: api.LimitUnlimited})
		default:
			a.Descriptors = append(a.Descriptors, api.Explained{WhyNoRule: "no rule of edge begins so", Closest: "endpoint"})
		}
	}
	return a, nil
}

func strictExplained() *api.Explained {
	window := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	return &api.Explained{
		Rule: &api.RuleRef{Path: "endpoint=/login > user", Name: "login", File: "limits.yaml", Line: 12},
		Limit: &api.LimitInForce{
			Requests: 5, WindowSeconds: 60, Algorithm: "fixed_window", Consistency: "strict",
			Scope: "global", Placement: "owner", OnFailure: "share: 10%", Quota: true, Shadow: true, Override: true,
		},
		Key: strings.Repeat("3f", 16),
		Counts: []api.RegionCount{
			{Region: "ap-south"},
			{Region: "eu-west", Hits: 3, StalenessSeconds: new(0.2041), Stamp: "1767323040123.4"},
			{Region: "us-east", Hits: 2, StalenessSeconds: new(0.0)},
		},
		Estimate: &api.EstimateGate{Counted: 5, Extrapolated: 1, Capacity: 5},
		Rights:   &api.RightsGate{Window: &window, Received: 2, Given: 1, Used: 1, WhyNot: "left out of an epoch"},
		StrictKey: &api.StrictKey{
			Layout: 3, Region: "us-east", Pinned: true, Owner: &us1, WhyNot: "the circuit breaker is open",
			Breaker: &api.Breaker{Owner: us1, State: api.BreakerOpen, Since: earlier(12 * time.Second), Calls: 50, Errors: 40},
			Source:  api.SourceAcceptor, Ballot: &api.BallotState{Round: 7, Owner: us1},
			Watermark: &api.WatermarkState{Window: &window, Watermark: new(uint64(5)), Consumed: new(uint64(4)), Limit: new(uint64(5))},
			Leases:    []api.GrantedLease{{Lessee: us0, Granted: 3, Returned: 1}, {Lessee: red, Granted: 1}}, Omitted: 2,
			Lease: &api.Lease{
				Granted: 3, Used: 2, Returned: 1, Until: later(time.Hour), Requested: true, Denied: new(uint64(1)),
				DeniedUntil: earlier(time.Second),
			},
		},
		Reserve: &api.StrictKey{
			Layout: 3, Region: "us-east", Owner: &us0, Self: true, Reachable: true, Source: api.SourceOwner,
			Ballot: &api.BallotState{Round: 1, Owner: us0}, Watermark: &api.WatermarkState{Drained: earlier(0), Consumed: new(uint64(0))},
		},
		Verdict: &api.Verdict{Remaining: 0, ResetSeconds: 12.3, RetrySeconds: new(12.3), Degraded: "no_majority"},
	}
}

// explainedWell is a bucket with a budget and no owner.
func explainedWell(_ context.Context, q api.ExplainQuery) (api.ExplainAnswer, error) {
	return api.ExplainAnswer{Domain: q.Domain, Hits: q.Hits, Allowed: true, Descriptors: []api.Explained{{
		Rule: &api.RuleRef{Path: "user"}, Key: strings.Repeat("0", 32),
		Limit: &api.LimitInForce{
			Requests: 100, WindowSeconds: 1, Burst: 200, Algorithm: "leaky_bucket",
			Consistency: "eventual", Scope: "region", Placement: "spread", Budget: new(0.02),
		},
		Estimate: &api.EstimateGate{Capacity: 200, Passes: true}, Rights: &api.RightsGate{Allotment: 68, Left: 68, Passes: true},
		StrictKey: &api.StrictKey{Layout: 1, Region: "eu-west"},
		Verdict:   &api.Verdict{Allowed: true, Remaining: 67, ResetSeconds: 2, DelaySeconds: 0.25},
	}}}, nil
}

// TestTextOfEmptyAnswers formats answers whose fields are all empty.
func TestTextOfEmptyAnswers(t *testing.T) {
	empty := api.ExplainAnswer{Descriptors: []api.Explained{
		{}, {Rule: &api.RuleRef{}}, {
			Rule: &api.RuleRef{}, Limit: &api.LimitInForce{}, StrictKey: &api.StrictKey{
				Owner: &api.DaemonRef{}, Breaker: &api.Breaker{}, Ballot: &api.BallotState{}, Watermark: &api.WatermarkState{},
				Lease: &api.Lease{}, Leases: []api.GrantedLease{{}},
			},
			Rights: &api.RightsGate{}, Estimate: &api.EstimateGate{}, Verdict: &api.Verdict{Never: true},
		},
	}}
	question, _ := everything()
	question.Descriptors = question.Descriptors[:3]
	strict := api.StrictState{
		Regions: []api.StrictRegion{{}, {Voters: []api.StrictVoter{{}}}}, Pins: []api.Pin{{}},
		Acceptor: &api.AcceptorState{}, Next: &api.NextLayout{WaitsFor: []api.Missing{{}}},
	}
	for name, text := range map[string]string{
		"explain": callExplained(question, &empty),
		"status": statusText(&api.StatusAnswer{
			Strict: &strict, Regions: []api.RegionState{{Members: []api.MemberState{{}}}},
			Breakers: []api.Breaker{{}}, Degraded: []api.DegradedState{{}}, Worst: &api.RuleUse{}, Denied: &api.RuleUse{},
		}),
		"strict": strictTable(&api.StrictAnswer{Strict: &strict}),
		"top":    topTable(&api.TopAnswer{Keys: []api.TopKey{{}}}, true),
	} {
		if text == "" || strings.Contains(text, "NaN") || strings.Contains(text, "%!") || strings.Contains(text, "<nil>") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// TestTopWatchesUntilInterrupted: an interrupt is no failure, a daemon that is
// gone is one.
func TestTopWatchesUntilInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var asked atomic.Int32
	h := handlerOf(admin.Options{Top: topKeys(false)})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 3 {
			interrupt()
		}
		h.ServeHTTP(w, r)
	}))
	defer s.Close()
	var out strings.Builder
	o := topOptions{
		by: "hits", n: 10, every: time.Millisecond,
		client: adminClient{addr: s.Listener.Addr().String(), timeout: 10 * time.Second, form: formFlag{usual: formTable}},
	}
	if err := o.follow(ctx, process{out: &out, err: io.Discard}); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	if got := strings.Count(out.String(), "RULE"); got != 2 || strings.Contains(out.String(), clearScreen) {
		t.Errorf("%d tables before the interrupt, want 2:\n%s", got, out.String())
	}
	s.Close()
	var exit *exitError
	if err := o.follow(t.Context(), process{out: io.Discard}); !errors.As(err, &exit) || exit.code != exitNoneOf {
		t.Errorf("of a daemon that is gone: %v", err)
	}
}

// TestNotesOfRegions: a region that the control log does not have is named as
// such once the cluster has begun.
func TestNotesOfRegions(t *testing.T) {
	a := &api.StatusAnswer{Cluster: &api.ClusterState{Begun: true, Regions: []api.ClusterRegion{{Name: "us"}}}}
	for _, tc := range []struct {
		region, want string
		begun        bool
	}{{"us", "", true}, {"eu", "not in the cluster", true}, {"eu", "", false}} {
		a.Cluster.Begun = tc.begun
		if got := strings.Join(regionNotes(a, &api.RegionState{Region: tc.region}), "; "); got != tc.want {
			t.Errorf("%s, begun %v: %q, want %q", tc.region, tc.begun, got, tc.want)
		}
	}
}

// TestNextSecretLine: rld status has what is to be done about a next secret.
func TestNextSecretLine(t *testing.T) {
	at := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		is   api.NextSecret
		want string
	}{
		{api.NextSecret{Lacking: []string{"eu/eu-0"}}, "! two cluster secrets: 1 peer does not have the next one yet: eu/eu-0\n"},
		{api.NextSecret{Lacking: []string{"eu/\x1b", "us/a"}}, "! two cluster secrets: 2 peers do not have the next one yet: eu/?, us/a\n"},
		{api.NextSecret{From: &at}, "two cluster secrets: the next one can replace the current one from 2027-01-02T03:04:05Z\n"},
		{api.NextSecret{}, "two cluster secrets: when the next one can replace the current one is not known yet\n"},
		{api.NextSecret{From: &at, Due: true}, "two cluster secrets: the next one can replace the current one now\n"},
	} {
		if got := nextSecretLine(&tt.is); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
