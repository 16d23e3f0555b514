package rls_test

import (
	"math"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

const (
	ok   = ratelimitv3.RateLimitResponse_OK
	over = ratelimitv3.RateLimitResponse_OVER_LIMIT
)

type (
	pbStatus = ratelimitv3.RateLimitResponse_DescriptorStatus
	pbLimit  = ratelimitv3.RateLimitResponse_RateLimit
)

func TestStatuses(t *testing.T) {
	hourly := &pbLimit{RequestsPerUnit: 10, Unit: ratelimitv3.RateLimitResponse_RateLimit_HOUR}
	shadowed := limit(10)
	shadowed.Shadow = true
	named := &rules.Limit{Unit: rules.Week, Multiplier: 2, Requests: 7, Name: "fortnight"}
	for _, tt := range []struct {
		name string
		st   node.Status
		want *pbStatus
	}{
		{"nothing matched", node.Status{}, &pbStatus{Code: ok}},
		{
			"unlimited",
			node.Status{Unlimited: true, Remaining: 1},
			&pbStatus{Code: ok, LimitRemaining: math.MaxUint32},
		},
		{
			"under",
			node.Status{Limit: limit(10), Remaining: 4, Reset: 90 * time.Second},
			&pbStatus{Code: ok, CurrentLimit: hourly, LimitRemaining: 4, DurationUntilReset: secs(90)},
		},
		{
			"reset is rounded up to seconds",
			node.Status{Limit: limit(10), Remaining: 4, Reset: 90*time.Second + 1},
			&pbStatus{Code: ok, CurrentLimit: hourly, LimitRemaining: 4, DurationUntilReset: secs(91)},
		},
		{
			"nothing to wait for",
			node.Status{Limit: limit(10), Remaining: 10},
			&pbStatus{Code: ok, CurrentLimit: hourly, LimitRemaining: 10, DurationUntilReset: secs(0)},
		},
		{
			"over says 0 although fewer hits would fit",
			node.Status{Limit: limit(10), Over: true, Remaining: 4, Reset: time.Second},
			&pbStatus{Code: over, CurrentLimit: hourly, DurationUntilReset: secs(1)},
		},
		{
			"over in shadow mode is OK with 0",
			node.Status{Limit: shadowed, Over: true, Remaining: 4, Reset: time.Second},
			&pbStatus{Code: ok, CurrentLimit: hourly, DurationUntilReset: secs(1)},
		},
		{
			"more than 32 bit remain",
			node.Status{Limit: limit(10), Remaining: 1 << 40, Reset: time.Second},
			&pbStatus{Code: ok, CurrentLimit: hourly, LimitRemaining: math.MaxUint32, DurationUntilReset: secs(1)},
		},
		{
			"name and multiplier",
			node.Status{Limit: named, Remaining: 4, Reset: time.Second},
			&pbStatus{Code: ok, LimitRemaining: 4, DurationUntilReset: secs(1), CurrentLimit: &pbLimit{
				Name: "fortnight", RequestsPerUnit: 7, Unit: ratelimitv3.RateLimitResponse_RateLimit_WEEK,
				UnitMultiplier: wrapperspb.UInt32(2),
			}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(t, answers(tt.st), server.DefaultSettings(), request(descriptor("k", "v")))
			got.ResponseHeadersToAdd = nil
			want := &ratelimitv3.RateLimitResponse{OverallCode: tt.want.Code, Statuses: []*pbStatus{tt.want}}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func secs(n int64) *durationpb.Duration { return &durationpb.Duration{Seconds: n} }

func TestUnits(t *testing.T) {
	for name, number := range ratelimitv3.RateLimitResponse_RateLimit_Unit_value {
		unit := rules.NoUnit
		for i, have := range rules.Units() {
			if have == lower(name) {
				unit = rules.Unit(i + 1)
			}
		}
		l := &rules.Limit{Unit: unit, Multiplier: 1, Requests: 1}
		got := ask(t, answers(node.Status{Limit: l}), server.DefaultSettings(), request(descriptor("k", "v")))
		if have := got.Statuses[0].CurrentLimit.Unit; int32(have) != number {
			t.Errorf("a limit by %q is sent as %s, want %s", unit, have, name)
		}
	}
}

func lower(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] |= 0x20
	}
	return string(b)
}

// TestOverallCode shows that the engine decides, statuses keep their order,
// and the global shadow mode changes the overall code alone.
func TestOverallCode(t *testing.T) {
	quota := limit(10)
	quota.Quota = true
	under := node.Status{Limit: limit(10), Remaining: 4}
	full := node.Status{Limit: limit(10), Over: true}
	for _, tt := range []struct {
		name     string
		statuses []node.Status
		allowed  bool
		shadow   bool
		want     ratelimitv3.RateLimitResponse_Code
		codes    []ratelimitv3.RateLimitResponse_Code
	}{
		{"passed", []node.Status{under, under}, true, false, ok, []ratelimitv3.RateLimitResponse_Code{ok, ok}},
		{"refused", []node.Status{under, full}, false, false, over, []ratelimitv3.RateLimitResponse_Code{ok, over}},
		{
			"passed beside a quota that is over",
			[]node.Status{{Limit: quota, Over: true}, under},
			true, false, ok,
			[]ratelimitv3.RateLimitResponse_Code{over, ok},
		},
		{
			"refused under the global shadow mode",
			[]node.Status{full, under},
			false, true, ok,
			[]ratelimitv3.RateLimitResponse_Code{over, ok},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := answers(tt.statuses...)
			e.decision.Allowed = tt.allowed
			settings := server.DefaultSettings()
			settings.Shadow = tt.shadow
			got := ask(t, e, settings, request(descriptor("a", "1"), descriptor("b", "2")))
			if got.OverallCode != tt.want {
				t.Errorf("overall %s, want %s", got.OverallCode, tt.want)
			}
			for i, want := range tt.codes {
				if have := got.Statuses[i].Code; have != want {
					t.Errorf("status %d is %s, want %s", i, have, want)
				}
			}
		})
	}
}
