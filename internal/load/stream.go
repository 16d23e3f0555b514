package load

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// Stream is one CheckStream that many Calls share, a check a message. It opens
// again for the next call when it has ended. It is safe for concurrent use.
type Stream struct {
	ctx  context.Context // of all streams
	stub rldv1.RateLimiterClient

	mu     sync.Mutex
	id     uint64 // of the last check
	open   *openStream
	ending sync.WaitGroup
}

// openStream is a stream from when it is to be opened until it ends.
type openStream struct {
	cancel context.CancelFunc
	out    chan *rldv1.CheckRequest // read once the stream is open
	// waiting has a channel for each check in flight, with room for its answer.
	waiting map[uint64]chan answered
}

// answered is the answer of a check, or why there is none.
type answered struct {
	answer *rldv1.CheckResponse
	err    error
}

// NewStream returns a stream over a connection, which ends with ctx.
func NewStream(ctx context.Context, conn grpc.ClientConnInterface) *Stream {
	return &Stream{ctx: ctx, stub: rldv1.NewRateLimiterClient(conn)}
}

// Call returns a Call over the stream. It sets the id of each request.
func (s *Stream) Call(next func() *rldv1.CheckRequest) Call {
	return func(ctx context.Context) (bool, error) {
		q := next()
		o, wait := s.register(q)
		out := o.out
		for {
			select {
			case out <- q:
				out = nil // sent
			case a := <-wait:
				if a.err != nil {
					return false, a.err
				}
				return admitted(a.answer)
			case <-ctx.Done():
				s.forget(o, q.Id)
				return false, status.FromContextError(ctx.Err()).Err()
			}
		}
	}
}

// register numbers a check and returns the stream that takes it, and where its
// answer comes.
func (s *Stream) register(q *rldv1.CheckRequest) (*openStream, <-chan answered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		ctx, cancel := context.WithCancel(s.ctx)
		o := &openStream{cancel, make(chan *rldv1.CheckRequest), make(map[uint64]chan answered)}
		s.open = o
		s.ending.Go(func() { s.run(ctx, o) })
	}
	s.id++
	q.Id = s.id
	wait := make(chan answered, 1)
	s.open.waiting[q.Id] = wait
	return s.open, wait
}

// run opens a stream, which takes as long as the connection does, and reads it
// until it ends.
func (s *Stream) run(ctx context.Context, o *openStream) {
	defer o.cancel()
	checks, err := s.stub.CheckStream(ctx)
	if err != nil {
		s.end(o, err)
		return
	}
	s.ending.Go(func() { o.write(ctx, checks) })
	s.read(o, checks)
}

// checkStream is a stream of checks and their answers.
type checkStream = grpc.BidiStreamingClient[rldv1.CheckFrame, rldv1.AnswerFrame]

// write sends the checks until the stream ends. A server that reads nothing
// holds it up, and no call beyond its timeout.
func (o *openStream) write(ctx context.Context, checks checkStream) {
	for {
		select {
		case q := <-o.out:
			// The reader knows why a stream has ended.
			_ = checks.Send(&rldv1.CheckFrame{Checks: []*rldv1.CheckRequest{q}})
		case <-ctx.Done():
			return
		}
	}
}

// forget leaves a check that waited for too long.
func (s *Stream) forget(o *openStream, id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(o.waiting, id)
}

// read takes the answers of a stream until it ends.
func (s *Stream) read(o *openStream, checks checkStream) {
	for {
		f, err := checks.Recv()
		if err != nil {
			if status.Code(err) == codes.Unknown {
				err = status.Errorf(codes.Unavailable, "the stream has ended: %v", err)
			}
			s.end(o, err)
			return
		}
		s.mu.Lock()
		for _, a := range f.Answers {
			if wait, ok := o.waiting[a.Id]; ok {
				delete(o.waiting, a.Id)
				wait <- answered{answer: a}
			}
		}
		s.mu.Unlock()
	}
}

// end fails the checks in flight of a stream. The next check opens another one.
func (s *Stream) end(o *openStream, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wait := range o.waiting {
		wait <- answered{err: err}
	}
	s.open = nil
}

// Close ends the stream. No call may be under way.
func (s *Stream) Close() {
	s.mu.Lock()
	if s.open != nil {
		s.open.cancel()
	}
	s.mu.Unlock()
	s.ending.Wait()
}
