package rls_test

import (
	"context"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/rls"
)

// back returns a descriptor that gives n hits back.
func back(n uint64, pairs ...string) *commonv3.RateLimitDescriptor {
	d := withHits(descriptor(pairs...), n)
	d.IsNegativeHits = true
	return d
}

func negatives() server.Settings {
	s := server.DefaultSettings()
	s.NegativeHits = true
	return s
}

// TestNegativeHits shows that the descriptors that charge are decided as one
// call, that the others give back whatever the decision is, and that statuses
// are in the order of the request.
func TestNegativeHits(t *testing.T) {
	in := request(back(5, "a", "1"), descriptor("b", "2"), back(0, "c", "3"), descriptor("d", "4"))
	in.Descriptors[2].HitsAddend = nil
	in.HitsAddend = 2
	e := answers(node.Status{Limit: limit(20), Remaining: 3}, node.Status{Limit: limit(30), Over: true, Retry: time.Second})
	// A limit of nothing is always over, and not for hits that come back.
	e.refunded = []node.Status{{Limit: limit(10), Remaining: 9}, {Limit: limit(0), Over: true, Never: true}}
	out := ask(t, e, negatives(), in)

	entry := func(k, v string, n uint64) rules.Descriptor {
		return rules.Descriptor{Entries: []rules.Entry{{Key: k, Value: v}}, Hits: n}
	}
	if diff := cmp.Diff([]asked{{"edge", []rules.Descriptor{entry("b", "2", 2), entry("d", "4", 2)}}}, e.calls); diff != "" {
		t.Errorf("charged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]asked{{"edge", []rules.Descriptor{entry("a", "1", 5), entry("c", "3", 2)}}}, e.refunds); diff != "" {
		t.Errorf("given back (-want +got):\n%s", diff)
	}
	if out.OverallCode != over {
		t.Errorf("overall %s, want that of the descriptors that charge", out.OverallCode)
	}
	type line struct {
		Code      ratelimitv3.RateLimitResponse_Code
		Limit     uint32
		Remaining uint32
	}
	var got []line
	for _, st := range out.Statuses {
		got = append(got, line{st.Code, st.CurrentLimit.GetRequestsPerUnit(), st.LimitRemaining})
	}
	if diff := cmp.Diff([]line{{ok, 10, 9}, {ok, 20, 3}, {ok, 0, 0}, {over, 30, 0}}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

// TestNegativeHitsAlone shows that a call that only gives back charges nothing
// and is admitted.
func TestNegativeHitsAlone(t *testing.T) {
	e := answers()
	e.refunded = []node.Status{{Limit: limit(10), Remaining: 9}}
	out := ask(t, e, negatives(), request(back(5, "a", "1")))
	if out.OverallCode != ok || len(e.calls) != 0 || len(e.refunds) != 1 {
		t.Errorf("%v, %d calls, %d refunds", out, len(e.calls), len(e.refunds))
	}
}

// TestNegativeHitsOfAFaultyCall shows that a faulty call neither charges nor
// gives back, whichever descriptor has the fault.
func TestNegativeHitsOfAFaultyCall(t *testing.T) {
	long := string(make([]byte, node.MaxTextBytes+1))
	for _, in := range []*ratelimitv3.RateLimitRequest{
		request(descriptor("a", "1"), back(5, "b", long)),
		request(descriptor("a", long), back(5, "b", "1")),
		{Descriptors: []*commonv3.RateLimitDescriptor{back(5, "a", "1")}},
	} {
		e := answers()
		_, err := rls.New(e, negatives(), nil).ShouldRateLimit(context.Background(), in)
		if status.Code(err) != codes.InvalidArgument || len(e.calls)+len(e.refunds) != 0 {
			t.Errorf("%v, %d calls, %d refunds", err, len(e.calls), len(e.refunds))
		}
	}
}
