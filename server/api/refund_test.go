package api_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/api"
)

// tokens asks for hits that may be given back and returns their tokens.
func tokens(t *testing.T, client rldv1.RateLimiterClient, hits ...uint64) (all [][]byte) {
	t.Helper()
	in := &rldv1.CheckRequest{Domain: "edge", Refundable: true}
	for _, n := range hits {
		in.Descriptors = append(in.Descriptors, withHits(n))
	}
	out, err := client.Check(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range out.Statuses {
		all = append(all, st.RefundToken)
	}
	return all
}

func statuses(n int) []node.Status { return make([]node.Status, n) }

func TestRefund(t *testing.T) {
	e := answers(statuses(3)...)
	e.incarnation = 1
	client := rldv1.NewRateLimiterClient(dial(t, api.New(e, server.DefaultSettings(), nil)))
	all := tokens(t, client, 5, 0, 7)
	if all[1] != nil {
		t.Error("what charged nothing carries a token")
	}
	for _, tt := range []struct {
		name     string
		token    []byte
		hits     *uint64
		refunded node.Refunded
		want     *rldv1.RefundResponse
	}{
		{"all", all[0], nil, node.Refunded{}, &rldv1.RefundResponse{Refunded: 5}},
		{"some", all[2], proto.Uint64(3), node.Refunded{}, &rldv1.RefundResponse{Refunded: 3}},
		{"twice", all[0], nil, node.Refunded{Already: true}, &rldv1.RefundResponse{Already: true}},
		{"late", all[0], nil, node.Refunded{Expired: true}, &rldv1.RefundResponse{Expired: true}},
	} {
		e.refunded = tt.refunded
		got, err := client.Refund(context.Background(), &rldv1.RefundRequest{RefundToken: tt.token, Hits: tt.hits})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if want := []uint64{5, 3, 5, 5}; !slices.Equal(e.refunds, want) {
		t.Errorf("the engine refunded %v, want %v", e.refunds, want)
	}
	e.refunded = node.Refunded{Full: true}
	_, err := client.Refund(context.Background(), &rldv1.RefundRequest{RefundToken: all[0]})
	if want := "try again later"; status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), want) {
		t.Errorf("no room to remember refunds: %v, want %q", err, want)
	}
}

// Only an answer that was asked to carries tokens: neither a peek nor a plain
// question does.
func TestTokensAreAskedFor(t *testing.T) {
	e := answers(statuses(1)...)
	client := rldv1.NewRateLimiterClient(dial(t, api.New(e, server.DefaultSettings(), nil)))
	for _, in := range []*rldv1.CheckRequest{
		question(1, "v"), {Refundable: true, Peek: true, Descriptors: []*rldv1.Descriptor{descriptor("k", "v")}},
	} {
		out, err := client.Check(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Statuses) != 1 || out.Statuses[0].RefundToken != nil {
			t.Errorf("asked %v, answered %v", in, out)
		}
	}
	// The memory of a question is used again: its former content is not
	// returned again.
	a, b := tokens(t, client, 1)[0], tokens(t, client, 1)[0]
	if a == nil || bytes.Equal(a, b) {
		t.Errorf("two charges have the tokens %x and %x", a, b)
	}
	out, err := client.Check(context.Background(), question(1, "v"))
	if err != nil || out.Statuses[0].RefundToken != nil {
		t.Errorf("a plain question after them: %v, %v", out, err)
	}
}

func TestTokensOnStreams(t *testing.T) {
	e := answers(statuses(1)...)
	s := api.New(e, server.DefaultSettings(), nil)
	p := open(s)
	in := question(1, "v")
	in.Refundable = true
	go func() {
		p.ask(t, in, question(2, "v"))
		close(p.asked)
	}()
	list, err := p.rest()
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if list[0].Statuses[0].RefundToken == nil || list[1].Statuses[0].RefundToken != nil {
		t.Errorf("answered %v, want a token in the first alone", list)
	}
}

func TestRefusedRefunds(t *testing.T) {
	e := answers(statuses(1)...)
	e.incarnation = 1
	rec := newRecorder()
	client := rldv1.NewRateLimiterClient(dial(t, api.New(e, server.DefaultSettings(), rec)))
	token := tokens(t, client, 5)[0]
	other := func(incarnation crdt.Incarnation) []byte {
		e := answers(statuses(1)...)
		e.incarnation = incarnation
		return tokens(t, rldv1.NewRateLimiterClient(dial(t, api.New(e, server.DefaultSettings(), nil))), 5)[0]
	}
	flipped := slices.Clone(token)
	flipped[82]++
	const forged = "refund token was not issued by this daemon: send one as an answer of Check carried it"
	for _, tt := range []struct {
		name string
		in   *rldv1.RefundRequest
		want error
	}{
		{"no token", &rldv1.RefundRequest{}, status.Error(codes.InvalidArgument,
			"malformed refund token of 0 bytes: send one as an answer of Check carried it")},
		{"another daemon's", &rldv1.RefundRequest{RefundToken: other(2)}, status.Error(codes.FailedPrecondition,
			"the hits were charged by daemon b1 in b (incarnation 0000000000000002): refund them there")},
		{"one's that is gone", &rldv1.RefundRequest{RefundToken: other(3)}, status.Error(codes.FailedPrecondition,
			"the hits were charged by incarnation 0000000000000003, which is no live daemon known here: "+
				"if it has restarted they cannot be refunded")},
		{"forged", &rldv1.RefundRequest{RefundToken: other(1)}, status.Error(codes.InvalidArgument, forged)},
		{"changed", &rldv1.RefundRequest{RefundToken: flipped}, status.Error(codes.InvalidArgument, forged)},
		{
			"more than charged", &rldv1.RefundRequest{RefundToken: token, Hits: proto.Uint64(6)},
			status.Error(codes.InvalidArgument, "refund of 6 hits, want 1 to 5, which were charged, or none for all"),
		},
		{
			"none", &rldv1.RefundRequest{RefundToken: token, Hits: proto.Uint64(0)},
			status.Error(codes.InvalidArgument, "refund of 0 hits, want 1 to 5, which were charged, or none for all"),
		},
	} {
		_, err := client.Refund(context.Background(), tt.in)
		if err == nil || err.Error() != tt.want.Error() {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	if got := rec.counts(server.EdgeNative); got != [2]int{1, 5} {
		t.Errorf("recorded %v decided and malformed, want 1 and 5", got)
	}
	if len(e.refunds) != 0 {
		t.Errorf("gave back %v", e.refunds)
	}
	// After all that the token is still good.
	if out, err := client.Refund(context.Background(), &rldv1.RefundRequest{RefundToken: token}); err != nil || out.Refunded != 5 {
		t.Errorf("%v, %v", out, err)
	}
}
