package api_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/api"
)

func override(n uint32, unit rldv1.Unit) *rldv1.Descriptor {
	d := descriptor("k", "v")
	d.Limit = &rldv1.Override{RequestsPerUnit: n, Unit: unit}
	return d
}

func withHits(n uint64) *rldv1.Descriptor {
	d := descriptor("k", "v")
	d.Hits = proto.Uint64(n)
	return d
}

func TestQuestionReachesTheEngine(t *testing.T) {
	kv := []rules.Entry{{Key: "k", Value: "v"}}
	for _, tt := range []struct {
		name string
		in   *rldv1.CheckRequest
		want asked
	}{
		{
			"hits are 1 when absent", question(7, "v"),
			asked{Descriptors: []rules.Descriptor{{Entries: kv, Hits: 1}}},
		},
		{
			"hits of the request, and of descriptors that have their own",
			&rldv1.CheckRequest{Hits: math.MaxUint64, Descriptors: []*rldv1.Descriptor{
				descriptor("k", "v"), withHits(0), withHits(5),
			}},
			asked{Descriptors: []rules.Descriptor{
				{Entries: kv, Hits: math.MaxUint64}, {Entries: kv}, {Entries: kv, Hits: 5},
			}},
		},
		{
			"peek", &rldv1.CheckRequest{Hits: 3, Peek: true, Descriptors: []*rldv1.Descriptor{descriptor("k", "v")}},
			asked{Peek: true, Descriptors: []rules.Descriptor{{Entries: kv, Hits: 3}}},
		},
		{"overrides", &rldv1.CheckRequest{Descriptors: []*rldv1.Descriptor{
			override(5, rldv1.Unit_SECOND), override(0, rldv1.Unit_WEEK), override(math.MaxUint32, rldv1.Unit_YEAR),
		}}, asked{Descriptors: []rules.Descriptor{
			{Entries: kv, Hits: 1, Override: rules.Override{Requests: 5, Unit: rules.Second}},
			{Entries: kv, Hits: 1, Override: rules.Override{Unit: rules.Week}},
			{Entries: kv, Hits: 1, Override: rules.Override{Requests: math.MaxUint32, Unit: rules.Year}},
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, rec := answers(), newRecorder()
			client := rldv1.NewRateLimiterClient(dial(t, api.New(e, server.DefaultSettings(), rec)))
			tt.in.Domain, tt.want.Domain = "edge", "edge"
			out, err := client.Check(context.Background(), tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]asked{tt.want}, e.asks()); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if want := (&rldv1.CheckResponse{Id: tt.in.Id, Code: rldv1.Code_ALLOWED}); !proto.Equal(want, out) {
				t.Errorf("answered %v, want %v", out, want)
			}
			if got := rec.counts(server.EdgeNative); got != [2]int{1, 0} {
				t.Errorf("recorded %v decided and malformed, want one decided", got)
			}
		})
	}
}

// TestRegisteredAsInTheProto holds the hand-written description of the
// service to the proto file it names, for reflection and for clients.
func TestRegisteredAsInTheProto(t *testing.T) {
	srv := grpc.NewServer()
	api.New(answers(), server.DefaultSettings(), nil).Register(srv)
	want := grpc.NewServer()
	rldv1.RegisterRateLimiterServer(want, rldv1.UnimplementedRateLimiterServer{})
	sorted := cmpopts.SortSlices(func(a, b grpc.MethodInfo) bool { return a.Name < b.Name })
	if diff := cmp.Diff(want.GetServiceInfo(), srv.GetServiceInfo(), sorted); diff != "" {
		t.Errorf("(-generated +ours):\n%s", diff)
	}
}

func TestAnswers(t *testing.T) {
	bucket := &rules.Limit{
		Algorithm: rules.TokenBucket, Unit: rules.Month, Multiplier: 2, Requests: 10, Burst: 20, Name: "bucket",
	}
	mode := func(shadow, quota bool) *rules.Limit {
		return &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 10, Shadow: shadow, Quota: quota}
	}
	hourly := &rldv1.Limit{
		RequestsPerUnit: 10, Unit: rldv1.Unit_HOUR, UnitMultiplier: 1, Algorithm: "fixed_window",
	}
	reset, now := durationpb.New(1500*time.Millisecond), new(durationpb.Duration)
	at := &rules.Rule{Path: "tier=free > user"}
	for _, tt := range []struct {
		name string
		st   node.Status
		want *rldv1.Status
	}{
		{"nothing matched", node.Status{}, &rldv1.Status{Code: rldv1.Code_ALLOWED}},
		{"whitelisted", node.Status{Rule: at}, &rldv1.Status{Code: rldv1.Code_ALLOWED, Rule: at.Path}},
		{
			"unlimited",
			node.Status{Rule: at, Unlimited: true},
			&rldv1.Status{Code: rldv1.Code_ALLOWED, Rule: at.Path, Unlimited: true},
		},
		{
			"under, delayed",
			node.Status{Rule: at, Limit: bucket, Remaining: 1 << 40, Reset: 1500 * time.Millisecond, Delay: 7},
			&rldv1.Status{
				Code: rldv1.Code_ALLOWED, Rule: at.Path, Remaining: 1 << 40, ResetAfter: reset,
				Delay: &durationpb.Duration{Nanos: 7}, Limit: &rldv1.Limit{
					RequestsPerUnit: 10, Unit: rldv1.Unit_MONTH, UnitMultiplier: 2,
					Algorithm: "token_bucket", Burst: 20, Name: "bucket",
				},
			},
		},
		{
			"over",
			node.Status{
				Limit: mode(false, false), Over: true, Remaining: 3, Retry: time.Second, Degraded: node.KeysFull,
			},
			&rldv1.Status{
				Code: rldv1.Code_DENIED, Limit: hourly, Remaining: 3, ResetAfter: now,
				RetryAfter: durationpb.New(time.Second), Degraded: true, DegradedReason: "keys_full",
				Reason: "limit",
			},
		},
		{
			"never fits",
			node.Status{Limit: mode(false, false), Over: true, Never: true, Remaining: 10},
			&rldv1.Status{Code: rldv1.Code_DENIED, Limit: hourly, Remaining: 10, ResetAfter: now, Reason: "limit"},
		},
		{
			"denied by the estimate",
			node.Status{Limit: mode(false, false), Over: true, Gate: node.EstimateGate, Estimated: true, Retry: time.Second},
			&rldv1.Status{
				Code: rldv1.Code_DENIED, Limit: hourly, ResetAfter: now, RetryAfter: durationpb.New(time.Second),
				Reason: "estimate",
			},
		},
		{
			"denied by rights",
			node.Status{Limit: mode(false, false), Over: true, Gate: node.RightsGate, Retry: time.Second},
			&rldv1.Status{
				Code: rldv1.Code_DENIED, Limit: hourly, ResetAfter: now, RetryAfter: durationpb.New(time.Second),
				Reason: "rights",
			},
		},
		{
			"over in shadow mode",
			node.Status{Limit: mode(true, true), Over: true, Retry: time.Second},
			&rldv1.Status{Code: rldv1.Code_ALLOWED, Limit: hourly, ResetAfter: now, Mode: rldv1.Mode_SHADOW, Reason: "limit"},
		},
		{
			"quota",
			node.Status{Limit: mode(false, true), Remaining: 3},
			&rldv1.Status{
				Code: rldv1.Code_ALLOWED, Limit: hourly, Remaining: 3, ResetAfter: now, Mode: rldv1.Mode_QUOTA,
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := rldv1.NewRateLimiterClient(dial(t, api.New(answers(tt.st), server.DefaultSettings(), nil)))
			out, err := client.Check(context.Background(), question(0, "v"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]*rldv1.Status{tt.want}, out.Statuses, protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	full := node.Status{Rule: &rules.Rule{Path: "a > b"}, Limit: &rules.Limit{Requests: 1}, Over: true}
	byOverride := node.Status{Limit: &rules.Limit{Requests: 1}, Over: true}
	for _, tt := range []struct {
		name     string
		statuses []node.Status
		shadow   bool
		code     rldv1.Code
		by       string
	}{
		{"allowed", []node.Status{{}}, false, rldv1.Code_ALLOWED, ""},
		{"denied by the second", []node.Status{{}, full}, false, rldv1.Code_DENIED, "a > b"},
		{"denied by an override", []node.Status{byOverride, full}, false, rldv1.Code_DENIED, "override"},
		{"global shadow mode", []node.Status{full}, true, rldv1.Code_ALLOWED, ""},
	} {
		settings := server.DefaultSettings()
		settings.Shadow = tt.shadow
		client := rldv1.NewRateLimiterClient(dial(t, api.New(answers(tt.statuses...), settings, nil)))
		out, err := client.Check(context.Background(), question(3, "v"))
		if err != nil {
			t.Fatal(err)
		}
		if out.Code != tt.code || out.RefusedBy != tt.by || out.Id != 3 {
			t.Errorf("%s: got %v, want %s by %q", tt.name, out, tt.code, tt.by)
		}
		if tt.shadow && out.Statuses[0].Code != rldv1.Code_DENIED {
			t.Errorf("%s: the status is %s", tt.name, out.Statuses[0].Code)
		}
	}
}

func TestUnitsAreAllKnown(t *testing.T) {
	for i, name := range rules.Units() {
		l := &rules.Limit{Unit: rules.Unit(i + 1)}
		s := api.New(answers(node.Status{Limit: l}), server.DefaultSettings(), nil)
		client := rldv1.NewRateLimiterClient(dial(t, s))
		out, err := client.Check(context.Background(), question(0, "v"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ToLower(out.Statuses[0].Limit.Unit.String()); got != name {
			t.Errorf("a limit by %s is sent as by %s", name, got)
		}
	}
}

func TestRefusedQuestions(t *testing.T) {
	const units = "; want one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR"
	many := &rldv1.CheckRequest{Domain: "edge"}
	for range 10_000 {
		many.Descriptors = append(many.Descriptors, descriptor("k", "v"))
	}
	in := func(d ...*rldv1.Descriptor) *rldv1.CheckRequest {
		return &rldv1.CheckRequest{Domain: "edge", Descriptors: d}
	}
	for _, tt := range []struct {
		name string
		in   *rldv1.CheckRequest
		err  error
		want error
	}{
		{
			"override without a unit", in(descriptor(), override(1, 0)), nil,
			status.Error(codes.InvalidArgument,
				"descriptor 1: limit override without a unit"+units),
		},
		{
			"override with an unknown unit", in(override(1, 8)), nil,
			status.Error(codes.InvalidArgument, "descriptor 0: limit override with the unknown unit 8"+units),
		},
		{
			"override with a negative unit", in(override(1, -8)), nil,
			status.Error(codes.InvalidArgument,
				"descriptor 0: limit override with the unknown unit -8"+units),
		},
		{
			"10,000 descriptors", many, nil,
			status.Error(codes.InvalidArgument, "10000 descriptors in one call, at most 256"),
		},
		{
			"what the engine refuses", in(), &node.InputError{Descriptor: -1, Entry: -1, Problem: "no descriptors"},
			status.Error(codes.InvalidArgument, "no descriptors"),
		},
		{
			"what the engine fails at", in(), errors.New("shard 3 is gone"),
			status.Error(codes.Internal, "shard 3 is gone"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, rec := &engine{check: func(*node.Call) error { return tt.err }}, newRecorder()
			client := rldv1.NewRateLimiterClient(dial(t, api.New(e, server.DefaultSettings(), rec)))
			_, err := client.Check(context.Background(), tt.in)
			if err == nil || err.Error() != tt.want.Error() {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			want := [2]int{0, 1}
			if status.Code(tt.want) == codes.Internal {
				want = [2]int{}
			}
			if got := rec.counts(server.EdgeNative); got != want {
				t.Errorf("recorded %v decided and malformed, want %v", got, want)
			}
		})
	}
}
