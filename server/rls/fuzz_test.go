package rls_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/rls"
)

// FuzzQuestion compares the reading of requests with the generated code: an
// accepted request reaches the engine with the same content or is rejected for
// a reason of ours. A rejected one is rejected by the generated code too,
// except for text that is not UTF-8.
func FuzzQuestion(f *testing.F) {
	limited := override(9, 3)
	limited.IsNegativeHits = true
	for _, in := range []*ratelimitv3.RateLimitRequest{
		{},
		request(descriptor("k", "v")), request(withHits(descriptor("a", "1", "b", "2"), 1<<40), override(5, 6)),
		request(limited, multiplied(30), multiplied(1), override(1, 0)),
	} {
		b, err := proto.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := answers()
		_, err := newHandler(rls.New(e, server.DefaultSettings(), nil)).call(b)
		if c := status.Code(err); c != codes.OK && c != codes.InvalidArgument && c != codes.Unimplemented {
			t.Fatalf("refused with %v", err)
		}
		in := new(ratelimitv3.RateLimitRequest)
		if parse := proto.Unmarshal(b, in); parse != nil {
			if err == nil && !strings.Contains(parse.Error(), "UTF-8") {
				t.Fatalf("accepted, generated code says %v", parse)
			}
			return
		}
		if err != nil {
			if !refusable(in) && !strings.Contains(err.Error(), "groups nested") {
				t.Fatalf("refused with %v: %v", err, in)
			}
			return
		}
		if diff := cmp.Diff([]asked{model(in)}, e.calls, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("asked (-want +got):\n%s", diff)
		}
	})
}

// refusable reports whether a request holds anything we refuse.
func refusable(in *ratelimitv3.RateLimitRequest) bool {
	bad := len(in.Descriptors) > node.MaxDescriptors
	for _, d := range in.Descriptors {
		bad = bad || d.IsNegativeHits || len(d.Entries) > node.MaxEntries
		if l := d.Limit; l != nil {
			bad = bad || l.Unit <= 0 || l.Unit > 6 || l.UnitMultiplier != nil && l.UnitMultiplier.Value != 1
		}
	}
	return bad
}

// model is what an engine should be asked.
func model(in *ratelimitv3.RateLimitRequest) asked {
	units := []rules.Unit{0, rules.Second, rules.Minute, rules.Hour, rules.Day, rules.Month, rules.Year}
	a := asked{Domain: in.Domain}
	for _, d := range in.Descriptors {
		out := rules.Descriptor{Hits: uint64(max(in.HitsAddend, 1))}
		if d.HitsAddend != nil {
			out.Hits = d.HitsAddend.Value
		}
		if l := d.Limit; l != nil {
			out.Override = rules.Override{Requests: l.RequestsPerUnit, Unit: units[l.Unit]}
		}
		for _, e := range d.Entries {
			out.Entries = append(out.Entries, rules.Entry{Key: e.Key, Value: e.Value})
		}
		a.Descriptors = append(a.Descriptors, out)
	}
	return a
}

// TestAnswersAreCanonical reads random answers with the generated code and
// writes them again: the bytes are the same.
func TestAnswersAreCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := answers(rapid.SliceOfN(rapid.Custom(anyStatus), 0, 5).Draw(t, "statuses")...)
		settings := dynamic()
		settings.Headers = rapid.Bool().Draw(t, "headers")
		in := request()
		for range e.statuses {
			in.Descriptors = append(in.Descriptors, descriptor("k", rapid.String().Draw(t, "value")))
		}
		asked, err := proto.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := newHandler(rls.New(e, settings, nil)).call(asked)
		if err != nil {
			t.Fatal(err)
		}
		got := out.Materialize()
		parsed := new(ratelimitv3.RateLimitResponse)
		if err := proto.Unmarshal(got, parsed); err != nil {
			t.Fatal(err)
		}
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(parsed)
		if err != nil || !bytes.Equal(want, got) {
			t.Fatalf("error %v\nwrote  %x\nshould %x", err, got, want)
		}
	})
}

func anyStatus(t *rapid.T) node.Status {
	st := node.Status{
		Remaining: rapid.Uint64().Draw(t, "remaining"),
		Reset:     time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "reset")),
		Retry:     time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "retry")),
		Delay:     time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "delay")),
		Degraded:  rapid.SampledFrom([]node.Degraded{node.NotDegraded, node.KeysFull}).Draw(t, "degraded"),
		Unlimited: rapid.Bool().Draw(t, "unlimited"),
	}
	if rapid.Bool().Draw(t, "limited") {
		st.Limit = &rules.Limit{
			Unit:       rules.Unit(rapid.IntRange(0, 7).Draw(t, "unit")),
			Multiplier: rapid.Uint32().Draw(t, "multiplier"),
			Requests:   rapid.Uint32().Draw(t, "requests"),
			Name:       rapid.String().Draw(t, "name"),
			Quota:      rapid.Bool().Draw(t, "quota"),
		}
		st.Over = rapid.Bool().Draw(t, "over")
	}
	return st
}
