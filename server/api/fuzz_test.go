package api_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/api"
	"github.com/georld/rld/server/message"
)

// handler takes the place of a gRPC server.
type handler struct {
	desc   *grpc.ServiceDesc
	server any
}

func (h *handler) RegisterService(d *grpc.ServiceDesc, s any) { h.desc, h.server = d, s }

func register(s *api.Service) *handler {
	h := new(handler)
	s.Register(h)
	return h
}

// check calls the handler of Check with a message as it came from the wire.
func (h *handler) check(asked []byte) error {
	read := func(v any) error {
		return message.NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(asked)}, v)
	}
	_, err := h.desc.Methods[0].Handler(h.server, context.Background(), read, nil)
	return err
}

// FuzzRefund checks that no caller can forge a refund, and that each rejection
// has a reason for the caller.
func FuzzRefund(f *testing.F) {
	e := answers(node.Status{})
	s := register(api.New(e, server.DefaultSettings(), nil))
	ask := func(method int, in []byte) (*message.Encoded, error) {
		read := func(v any) error {
			return message.NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(in)}, v)
		}
		out, err := s.desc.Methods[method].Handler(s.server, context.Background(), read, nil)
		b, _ := out.(*message.Encoded)
		return b, err
	}
	in := question(1, "v")
	in.Refundable = true
	asked, err := proto.Marshal(in)
	if err != nil {
		f.Fatal(err)
	}
	answer, err := ask(0, asked)
	if err != nil {
		f.Fatal(err)
	}
	wire, err := message.NewCodec().Marshal(answer)
	if err != nil {
		f.Fatal(err)
	}
	out := new(rldv1.CheckResponse)
	if err := proto.Unmarshal(wire.Materialize(), out); err != nil {
		f.Fatal(err)
	}
	token := out.Statuses[0].RefundToken
	for _, g := range []*rldv1.RefundRequest{{}, {RefundToken: token[1:]}, {RefundToken: append(token[:40:40], token[41:]...)}} {
		b, err := proto.Marshal(g)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := ask(1, b)
		if c := status.Code(err); c != codes.InvalidArgument && c != codes.FailedPrecondition {
			t.Fatalf("refunded, or refused with %v", err)
		}
	})
}

// FuzzQuestion compares the reading of requests with the generated code: an
// accepted request reaches the engine with the same content or is rejected for
// a reason of ours. A rejected one is rejected by the generated code too,
// except for text that is not UTF-8.
func FuzzQuestion(f *testing.F) {
	for _, in := range []*rldv1.CheckRequest{
		{},
		question(1<<63, "v"),
		{Domain: "d", Hits: 5, Refundable: true, Descriptors: []*rldv1.Descriptor{withHits(3)}},
		{Domain: "d", Hits: 5, Peek: true, Descriptors: []*rldv1.Descriptor{
			withHits(0), override(4, rldv1.Unit_WEEK), override(4, 0), descriptor("a", "1", "b", "2"),
		}},
	} {
		b, err := proto.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := answers()
		err := register(api.New(e, server.DefaultSettings(), nil)).check(b)
		if c := status.Code(err); c != codes.OK && c != codes.InvalidArgument {
			t.Fatalf("refused with %v", err)
		}
		in := new(rldv1.CheckRequest)
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
		if diff := cmp.Diff([]asked{model(in)}, e.asks(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("asked (-want +got):\n%s", diff)
		}
	})
}

// refusable reports whether a request holds anything we refuse.
func refusable(in *rldv1.CheckRequest) bool {
	bad := len(in.Descriptors) > node.MaxDescriptors
	for _, d := range in.Descriptors {
		bad = bad || len(d.Entries) > node.MaxEntries
		bad = bad || d.Limit != nil && (d.Limit.Unit <= 0 || d.Limit.Unit > rldv1.Unit_YEAR)
	}
	return bad
}

// model is what an engine should be asked.
func model(in *rldv1.CheckRequest) asked {
	a := asked{Domain: in.Domain, Peek: in.Peek}
	for _, d := range in.Descriptors {
		out := rules.Descriptor{Hits: max(in.Hits, 1)}
		if d.Hits != nil {
			out.Hits = *d.Hits
		}
		if d.Limit != nil {
			out.Override = rules.Override{Requests: d.Limit.RequestsPerUnit, Unit: rules.Unit(d.Limit.Unit)}
		}
		for _, e := range d.Entries {
			out.Entries = append(out.Entries, rules.Entry{Key: e.Key, Value: e.Value})
		}
		a.Descriptors = append(a.Descriptors, out)
	}
	return a
}
