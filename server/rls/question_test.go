package rls_test

import (
	"context"
	"math"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/rls"
)

// descriptor returns a descriptor of the keys and values given in turn.
func descriptor(pairs ...string) *commonv3.RateLimitDescriptor {
	d := new(commonv3.RateLimitDescriptor)
	for i := 0; i < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

// request returns a request of a domain for descriptors.
func request(descriptors ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: "edge", Descriptors: descriptors}
}

func override(n uint32, unit typev3.RateLimitUnit) *commonv3.RateLimitDescriptor {
	d := descriptor("k", "v")
	d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: n, Unit: unit}
	return d
}

func multiplied(n uint32) *commonv3.RateLimitDescriptor {
	d := override(3, typev3.RateLimitUnit_SECOND)
	d.Limit.UnitMultiplier = wrapperspb.UInt32(n)
	return d
}

func withHits(d *commonv3.RateLimitDescriptor, n uint64) *commonv3.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

func TestQuestionReachesTheEngine(t *testing.T) {
	kv := []rules.Entry{{Key: "k", Value: "v"}}
	one := func(d rules.Descriptor) []rules.Descriptor { return []rules.Descriptor{d} }
	for _, tt := range []struct {
		name string
		in   *ratelimitv3.RateLimitRequest
		want []rules.Descriptor
	}{
		{"hits are 1 when absent", request(descriptor("k", "v")), one(rules.Descriptor{Entries: kv, Hits: 1})},
		{
			"hits of the request, and of descriptors that have their own",
			&ratelimitv3.RateLimitRequest{Domain: "edge", HitsAddend: 3, Descriptors: []*commonv3.RateLimitDescriptor{
				descriptor("k", "v"), withHits(descriptor("k", "v"), 0), withHits(descriptor("k", "v"), math.MaxUint64),
			}},
			[]rules.Descriptor{{Entries: kv, Hits: 3}, {Entries: kv}, {Entries: kv, Hits: math.MaxUint64}},
		},
		{
			"largest hits of a request",
			&ratelimitv3.RateLimitRequest{
				Domain: "edge", HitsAddend: math.MaxUint32,
				Descriptors: []*commonv3.RateLimitDescriptor{descriptor("k", "v")},
			},
			one(rules.Descriptor{Entries: kv, Hits: math.MaxUint32}),
		},
		{
			"several entries", request(descriptor("a", "1", "b", "", "c", "grüße")),
			one(rules.Descriptor{Hits: 1, Entries: []rules.Entry{
				{Key: "a", Value: "1"}, {Key: "b"}, {Key: "c", Value: "grüße"},
			}}),
		},
		{
			"an empty key, as in the reference", request(descriptor("", "v")),
			one(rules.Descriptor{Hits: 1, Entries: []rules.Entry{{Value: "v"}}}),
		},
		{"no entries", request(descriptor()), one(rules.Descriptor{Hits: 1})},
		{
			"override by second", request(override(5, typev3.RateLimitUnit_SECOND)),
			one(rules.Descriptor{Entries: kv, Hits: 1, Override: rules.Override{Requests: 5, Unit: rules.Second}}),
		},
		{
			"override of nothing by month", request(override(0, typev3.RateLimitUnit_MONTH)),
			one(rules.Descriptor{Entries: kv, Hits: 1, Override: rules.Override{Unit: rules.Month}}),
		},
		{
			"override by year", request(override(math.MaxUint32, typev3.RateLimitUnit_YEAR)),
			one(rules.Descriptor{
				Entries: kv, Hits: 1,
				Override: rules.Override{Requests: math.MaxUint32, Unit: rules.Year},
			}),
		},
		{
			"override with a multiplier of one", request(multiplied(1)),
			one(rules.Descriptor{Entries: kv, Hits: 1, Override: rules.Override{Requests: 3, Unit: rules.Second}}),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := answers()
			ask(t, e, server.DefaultSettings(), tt.in)
			if diff := cmp.Diff([]asked{{"edge", tt.want}}, e.calls); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusedQuestions(t *testing.T) {
	const units = "; want one of SECOND, MINUTE, HOUR, DAY, MONTH, YEAR"
	negative := descriptor("k", "v")
	negative.IsNegativeHits = true
	many := make([]*commonv3.RateLimitDescriptor, 10_000)
	for i := range many {
		many[i] = descriptor("k", "v")
	}
	for _, tt := range []struct {
		name string
		in   *ratelimitv3.RateLimitRequest
		code codes.Code
		text string
	}{
		{
			"override without a unit", request(descriptor("k", "v"), override(5, typev3.RateLimitUnit_UNKNOWN)),
			codes.InvalidArgument, "descriptor 1: limit override without a unit" + units,
		},
		{
			"override with an unknown unit", request(override(5, 99)),
			codes.InvalidArgument, "descriptor 0: limit override with the unknown unit 99" + units,
		},
		{
			"override with a negative unit", request(override(5, -1)),
			codes.InvalidArgument, "descriptor 0: limit override with the unknown unit -1" + units,
		},
		{
			"override with a multiplier", request(multiplied(30)),
			codes.InvalidArgument, "descriptor 0: limit override with unit_multiplier 30, only 1 is supported",
		},
		{
			"override with a multiplier of zero", request(multiplied(0)),
			codes.InvalidArgument, "descriptor 0: limit override with unit_multiplier 0, only 1 is supported",
		},
		{
			"negative hits", request(descriptor("k", "v"), negative),
			codes.Unimplemented, "descriptor 1: is_negative_hits is set, and the setting rls.negative_hits is not",
		},
		{
			"10,000 descriptors", request(many...),
			codes.InvalidArgument, "10000 descriptors in one call, at most 256",
		},
		{
			"33 entries", request(descriptor(strings.Split(strings.Repeat("k,v,", 33), ",")[:66]...)),
			codes.InvalidArgument, "descriptor 0: 33 entries, at most 32",
		},
		{"text that is no UTF-8", request(descriptor("k", "\xff")), codes.InvalidArgument, "UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, rec := answers(), new(recorder)
			_, err := rls.New(e, server.DefaultSettings(), rec).ShouldRateLimit(context.Background(), tt.in)
			if status.Code(err) != tt.code || !strings.Contains(status.Convert(err).Message(), tt.text) {
				t.Errorf("got %v, want %s with %q", err, tt.code, tt.text)
			}
			if len(e.calls) > 0 {
				t.Error("the engine was asked")
			}
			if *rec != (recorder{malformed: 1}) {
				t.Errorf("recorded %+v, want one malformed question", *rec)
			}
		})
	}
}
