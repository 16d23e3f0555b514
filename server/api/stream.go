package api

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/message"
)

// MaxChecks is how many checks a frame may hold. Of a frame with more the
// first MaxChecks are answered, and the stream ends with InvalidArgument: an
// answer to each would cost many times the bytes of its question.
const MaxChecks = 1_024

// keepAnswer bounds the memory an idle stream keeps for its next answer.
const keepAnswer = 4 << 10

// maxWaiting is how many questions of a stream may wait for the owners of their
// limits while the next ones are decided. With one more that waits the reader
// waits, too.
const maxWaiting = 256

// The field of CheckFrame, and the one of AnswerFrame.
const (
	frameChecks  = 1<<3 | message.Len
	frameAnswers = 1<<3 | message.Len
)

// frame is a CheckFrame, read question by question.
type frame struct{ text string }

// ReadMessage keeps the frame for the reader.
func (f *frame) ReadMessage(text string) { f.text = text }

// checkStream is the handler of CheckStream. It sends; a second goroutine
// reads and decides, since only returning from here ends a read that waits.
// That goroutine ends soon after, and Wait waits for it.
func checkStream(srv any, ss grpc.ServerStream) error {
	s := srv.(*Service)
	var caller auth.Credentials
	if s.settings.Authorizer != nil {
		caller = auth.FromGRPC(ss.Context())
		if err := s.settings.Authorizer.Known(caller, time.Now()); err != nil {
			return message.StatusOf(err).Err()
		}
	}
	r := &reader{
		service: s, stream: ss, caller: caller, out: newOutbox(s.drain, &s.buffers, ss.Context()), waiting: make(chan struct{}, maxWaiting),
	}
	s.readers.Add(1)
	go func() {
		defer s.readers.Done()
		r.run()
	}()
	defer r.out.abandon()
	return s.send(ss, r.out)
}

// send sends answers until the reader has ended and nothing is left.
func (s *Service) send(ss grpc.ServerStream, out *outbox) error {
	ctx, drain := ss.Context(), s.drain
	unsent := &unsent{Buffers: &s.buffers, ctx: ctx}
	defer unsent.end()
	for {
		select {
		case <-out.wake:
		case <-drain:
			drain = nil // Once is enough; out knows.
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
		for {
			answers, last, err := out.take()
			if last {
				return endOf(err, out.draining())
			}
			if answers == nil {
				break
			}
			if err := ss.SendMsg(unsent.encode(answers)); err != nil {
				return err
			}
		}
	}
}

// endOf returns how a stream ends whose reader ended with err.
func endOf(err error, draining bool) error {
	var p *panicked
	switch {
	case errors.As(err, &p):
		panic(p) // Here, where the server has its net.
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	case draining:
		return status.Error(codes.Unavailable, "draining, reconnect: what was not answered was not charged")
	}
	return nil
}

// panicked is a panic on its way from the reader to the handler.
type panicked struct {
	value any
	stack []byte
}

// Error describes the panic and its place.
func (p *panicked) Error() string { return fmt.Sprintf("%v\n%s", p.value, p.stack) }

// reader reads and decides the frames of a stream.
type reader struct {
	service *Service
	stream  grpc.ServerStream
	caller  auth.Credentials
	out     *outbox
	answer  []byte        // reused
	waited  time.Duration // for room in the outbox, of the frame being decided
	waiting chan struct{} // a token a question that waits for an owner
}

// run reads until the client has no more questions, the stream ends, or the
// outbox takes no more answers.
func (r *reader) run() {
	var err error
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{value: p, stack: debug.Stack()}
		}
		r.out.finish(err)
	}()
	err = r.read()
}

func (r *reader) read() error {
	var f frame
	for {
		if err := r.stream.RecvMsg(&f); err != nil {
			return err
		}
		if !r.out.begin() {
			return nil
		}
		r.waited = 0
		if err := r.decide(f.text); err != nil {
			return err
		}
		r.out.end()
		f.text = "" // The next frame may be long in coming.
		if cap(r.answer) > keepAnswer {
			r.answer = nil
		}
	}
}

// decide answers the questions of a frame in their order, but for those that
// wait for an owner: their answers come when they are there. It returns an
// error when the frame cannot be taken apart or has too many; the questions
// before are answered.
func (r *reader) decide(text string) error {
	defer message.Hold(r.stream.Context(), len(text))()
	s := r.service
	start, n := time.Now(), 0
	q := s.question()
	defer func() { s.free(q) }()
	scan := message.Scan(text)
	for scan.Next() {
		if scan.Tag != frameChecks {
			continue
		}
		if n++; n > MaxChecks {
			s.recorder.Malformed(server.EdgeStream)
			return status.Errorf(codes.InvalidArgument,
				"more than %d checks in a frame: the first %d are answered, the others go into further frames",
				MaxChecks, MaxChecks)
		}
		q.start()
		q.ReadMessage(scan.Text)
		if err := s.admit(&r.caller, q); err != nil {
			if !r.refuse(q, err) {
				return nil
			}
			continue
		}
		decided, err := s.try(q)
		if !decided && r.later(q, scan.Text, start) {
			q = s.question()
			continue
		}
		if !decided {
			err = s.engine.Check(r.stream.Context(), q.draft.Call)
		}
		if !r.reply(q, err) {
			return nil
		}
	}
	if err := scan.Err(); err != nil {
		s.recorder.Malformed(server.EdgeStream)
		return status.Errorf(codes.InvalidArgument, "malformed CheckFrame: %v", err)
	}
	s.recorder.Decided(server.EdgeStream, time.Since(start)-r.waited)
	return nil
}

// reply answers a question of a frame, which was decided or could not be. It
// returns false when nobody takes answers anymore.
func (r *reader) reply(q *question, err error) bool {
	r.answer = r.service.appendReply(r.answer[:0], q, err)
	return r.out.put(r.answer, &r.waited)
}

// refuse answers a question whose caller may not ask it. It returns what reply
// does.
func (r *reader) refuse(q *question, err error) bool {
	b, at := message.Open(r.answer[:0], frameAnswers)
	r.answer = message.Close(appendFault(b, q.id, message.StatusOf(err)), at)
	return r.out.put(r.answer, &r.waited)
}

// appendReply appends the answer to a question as a frame has it.
func (s *Service) appendReply(b []byte, q *question, err error) []byte {
	b, at := message.Open(b, frameAnswers)
	if err == nil {
		b = s.appendAnswer(b, q)
	} else {
		s.recorder.Malformed(server.EdgeStream)
		b = appendFault(b, q.id, message.StatusOf(err))
	}
	return message.Close(b, at)
}

// later has a question wait for its owners beside the ones after it, without
// the rest of its frame. It takes over the question, and returns false when too
// many wait.
func (r *reader) later(q *question, text string, start time.Time) bool {
	select {
	case r.waiting <- struct{}{}:
	default:
		return false
	}
	s := r.service
	q.start()
	q.ReadMessage(strings.Clone(text))
	release := message.Hold(r.stream.Context(), len(text))
	r.out.owe()
	s.readers.Add(1)
	go func() {
		defer s.readers.Done()
		defer func() {
			<-r.waiting
			release()
			if p := recover(); p != nil {
				r.out.fail(&panicked{value: p, stack: debug.Stack()})
			}
			r.out.paid()
		}()
		defer s.free(q)
		err := s.decide(r.stream.Context(), q)
		s.recorder.Decided(server.EdgeStream, time.Since(start))
		var waited time.Duration
		r.out.put(s.appendReply(nil, q, err), &waited)
	}()
	return true
}
