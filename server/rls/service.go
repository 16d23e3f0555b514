package rls

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/message"
)

// ServiceName is the full name of the service.
const ServiceName = "envoy.service.ratelimit.v3.RateLimitService"

// Engine decides calls and gives hits back. Implementations are safe for
// concurrent use.
type Engine interface {
	server.Engine
	// RefundHits gives the hits of each descriptor back without a refund token,
	// as far as this daemon counted them and they still count. It fills in
	// c.Statuses as of a peek after that, and waits for nothing.
	RefundHits(c *node.Call) error
}

// Service is the RLS edge. It is safe for concurrent use.
type Service struct {
	engine   Engine
	settings server.Settings
	recorder server.Recorder

	questions sync.Pool // of *question
}

var _ ratelimitv3.RateLimitServiceServer = (*Service)(nil)

// New returns the edge to an engine. A nil recorder records nothing.
func New(engine Engine, settings server.Settings, recorder server.Recorder) *Service {
	recorder = cmp.Or(recorder, server.Recorder(server.NoRecorder{}))
	return &Service{engine: engine, settings: settings, recorder: recorder}
}

// Register adds the service to a gRPC server, which must use message.Codec.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: ServiceName,
		HandlerType: (*ratelimitv3.RateLimitServiceServer)(nil),
		Methods: []grpc.MethodDesc{
			message.Method(s, ServiceName, "ShouldRateLimit", s.question, s.free, s.admit),
		},
		Metadata: "envoy/service/ratelimit/v3/rls.proto",
	}, s)
}

// Drain and Wait do nothing: a call ends by itself.
func (s *Service) Drain() {}

// Wait does nothing, see Drain.
func (s *Service) Wait() {}

// ShouldRateLimit answers a message in process, for edges that have one and
// have admitted its caller. It costs more than a call over the wire does here.
func (s *Service) ShouldRateLimit(
	ctx context.Context, in *ratelimitv3.RateLimitRequest,
) (*ratelimitv3.RateLimitResponse, error) {
	asked, err := proto.Marshal(in)
	if err != nil {
		s.recorder.Malformed(server.EdgeRLS)
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	q := s.question()
	defer s.free(q)
	q.ReadMessage(string(asked))
	answer, err := s.answer(ctx, q)
	if err != nil {
		return nil, err
	}
	out := new(ratelimitv3.RateLimitResponse)
	if err := proto.Unmarshal(answer, out); err != nil {
		return nil, status.Errorf(codes.Internal, "reading the own answer: %v", err)
	}
	return out, nil
}

// admit is answer for a caller on the wire.
func (s *Service) admit(ctx context.Context, q *question) ([]byte, error) {
	if s.settings.Authorizer != nil {
		need := auth.Need{Domain: q.draft.Call.Domain}
		if err := s.settings.Authorizer.Admit(auth.FromGRPC(ctx), need, time.Now()); err != nil {
			return nil, s.refuse(err)
		}
	}
	return s.answer(ctx, q)
}

// answer decides a question and returns the response on the wire.
func (s *Service) answer(ctx context.Context, q *question) ([]byte, error) {
	start := time.Now()
	if err := q.finish(); err != nil {
		return nil, s.refuse(err)
	}
	if err := s.decide(ctx, q); err != nil {
		return nil, s.refuse(err)
	}
	b := s.appendResponse(make([]byte, 0, responseBytes*len(q.draft.Call.Statuses)), q)
	s.recorder.Decided(server.EdgeRLS, time.Since(start))
	return b, nil
}

// refuse turns the reason why a call was not decided into a gRPC status.
func (s *Service) refuse(err error) error {
	st := message.StatusOf(err)
	if errors.Is(err, errNegativeHits) {
		st = status.New(codes.Unimplemented, err.Error())
	}
	if st.Code() == codes.InvalidArgument || st.Code() == codes.Unimplemented {
		s.recorder.Malformed(server.EdgeRLS)
	}
	return st.Err()
}

func (s *Service) question() *question {
	q, ok := s.questions.Get().(*question)
	if !ok {
		q = new(question)
	}
	q.start()
	return q
}

func (s *Service) free(q *question) {
	q.draft.Free()
	s.questions.Put(q)
}
