package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/message"
)

// ServiceName is the full name of the service.
const ServiceName = "rld.v1.RateLimiter"

// Service is the native edge. It is safe for concurrent use.
type Service struct {
	engine   Engine
	settings server.Settings
	recorder server.Recorder

	questions sync.Pool       // of *question
	buffers   message.Buffers // of answers on streams

	sealer replica.TokenSealer

	drain    chan struct{} // closed by Drain
	draining sync.Once
	readers  sync.WaitGroup // one a stream
}

// New returns the edge to an engine. A nil recorder records nothing.
func New(engine Engine, settings server.Settings, recorder server.Recorder) *Service {
	recorder = cmp.Or(recorder, server.Recorder(server.NoRecorder{}))
	var key [16]byte
	rand.Read(key[:]) // never fails
	return &Service{
		engine: engine, settings: settings, recorder: recorder, drain: make(chan struct{}),
		sealer: replica.NewTokenSealer(key),
	}
}

// Register adds the service to a gRPC server, which must use message.Codec.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: ServiceName,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			message.Method(s, ServiceName, "Check", s.question, s.free, s.answer),
			message.Method(s, ServiceName, "Refund", func() *refundCall { return new(refundCall) }, func(*refundCall) {}, s.refund),
		},
		Streams: []grpc.StreamDesc{{
			StreamName: "CheckStream", Handler: checkStream, ServerStreams: true, ClientStreams: true,
		}},
		Metadata: rldv1.File_rld_v1_rld_proto.Path(),
	}, s)
}

// Drain ends every stream, now and later, once the questions it has read are
// answered. It does not wait for that.
func (s *Service) Drain() { s.draining.Do(func() { close(s.drain) }) }

// Wait returns when no stream is being read anymore. Call it after the gRPC
// server has stopped.
func (s *Service) Wait() { s.readers.Wait() }

// answer decides a question of Check and returns the response on the wire.
func (s *Service) answer(ctx context.Context, q *question) ([]byte, error) {
	start := time.Now()
	var caller auth.Credentials
	if s.settings.Authorizer != nil {
		caller = auth.FromGRPC(ctx)
	}
	if err := s.admit(&caller, q); err != nil {
		return nil, message.StatusOf(err).Err()
	}
	if err := s.decide(ctx, q); err != nil {
		st := message.StatusOf(err)
		if st.Code() == codes.InvalidArgument {
			s.recorder.Malformed(server.EdgeNative)
		}
		return nil, st.Err()
	}
	c := q.draft.Call
	b := s.appendAnswer(make([]byte, 0, answerBytes*len(c.Statuses)), q)
	s.recorder.Decided(server.EdgeNative, time.Since(start))
	return b, nil
}

// admit returns a refusal if the caller may not ask a question.
func (s *Service) admit(caller *auth.Credentials, q *question) error {
	if s.settings.Authorizer == nil {
		return nil
	}
	need := auth.Need{Domain: q.draft.Call.Domain}
	if q.draft.Call.Peek {
		need.Verb = auth.Read
	}
	return s.settings.Authorizer.Admit(*caller, need, time.Now())
}

// decide checks a question's call.
func (s *Service) decide(ctx context.Context, q *question) error {
	if err := q.finish(); err != nil {
		return err
	}
	return s.engine.Check(ctx, q.draft.Call)
}

// try is decide for a question that need not wait. It returns false, with
// nothing charged, for one that has to: Engine.Check decides it.
func (s *Service) try(q *question) (decided bool, err error) {
	if err := q.finish(); err != nil {
		return true, err
	}
	return s.engine.TryCheck(q.draft.Call)
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
