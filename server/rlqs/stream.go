package rlqs

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/message"
	"github.com/georld/rld/server/rlqs/session"
)

// maxActions bounds the actions of a message, which clients bound in bytes.
const maxActions = 1_024

var errDraining = status.Error(codes.Unavailable, "draining, reconnect: what was assigned stays charged")

// received is a message of a stream, or why there are no more.
type received struct {
	text string
	err  error
}

// stream is one stream of a client.
type stream struct {
	service *Service
	grpc    grpc.ServerStream
	caller  auth.Credentials
	limiter limiter
	session *session.Session
	start   time.Time
}

// serve is the handler of StreamRateLimitQuotas. It decides and sends; a second
// goroutine reads, since only returning from here ends a read that waits. What
// a stream was assigned stays charged when it ends.
func serve(srv any, ss grpc.ServerStream) error {
	s := srv.(*Service)
	ctx, cancel := context.WithCancel(ss.Context())
	defer cancel()
	st := &stream{service: s, grpc: ss, start: time.Now()}
	if s.settings.Authorizer != nil {
		st.caller = auth.FromGRPC(ss.Context())
		if err := s.settings.Authorizer.Known(st.caller, time.Now()); err != nil {
			return message.StatusOf(err).Err()
		}
	}
	st.limiter = limiter{engine: s.engine, shadow: s.settings.Shadow, ctx: ctx}
	st.session = session.New(&st.limiter, st.now)
	messages := make(chan received)
	s.readers.Go(func() { receive(ctx, ss, messages) })
	return st.run(ctx, messages)
}

// receive reads until the stream ends.
func receive(ctx context.Context, ss grpc.ServerStream, to chan<- received) {
	for {
		var f frame
		err := ss.RecvMsg(&f)
		select {
		case to <- received{f.text, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// run answers messages, and acts without one when the session is due.
func (s *stream) run(ctx context.Context, messages <-chan received) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if at, ok := s.session.Next(); ok {
			timer.Reset(max(0, at-s.now()))
		}
		select {
		case m := <-messages:
			if errors.Is(m.err, io.EOF) {
				return nil
			} else if m.err != nil {
				return m.err
			}
			if err := s.report(m.text); err != nil {
				return err
			}
		case <-timer.C:
			s.session.Tick()
			if err := s.act(); err != nil {
				return err
			}
		case <-s.service.drain:
			return errDraining
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// now is the time of the session.
func (s *stream) now() time.Duration { return time.Since(s.start) }

// report applies a message and answers it.
func (s *stream) report(text string) error {
	defer message.Hold(s.grpc.Context(), len(text))()
	start := time.Now()
	domain, usages, err := read(text, s.limiter.domain)
	if err != nil {
		return s.refuse(err)
	}
	if a := s.service.settings.Authorizer; a != nil {
		if err := a.Admit(s.caller, auth.Need{Domain: domain}, start); err != nil {
			return s.refuse(err)
		}
	}
	s.limiter.domain = domain
	s.session.Report(usages)
	if err := s.act(); err != nil {
		return err
	}
	s.service.recorder.Decided(server.EdgeRLQS, time.Since(start))
	return nil
}

// act sends the actions of the session in parts, since charges may wait for the
// owners of many strict keys.
func (s *stream) act() error {
	for more := true; more; {
		select {
		case <-s.service.drain:
			return errDraining
		default:
		}
		actions, left, err := s.session.Act()
		if err := s.send(actions, err); err != nil {
			return err
		}
		more = left
	}
	return nil
}

// send sends actions. Then it returns the error of the session that made them,
// as a status.
func (s *stream) send(actions []session.Action, err error) error {
	for len(actions) > 0 {
		n := min(len(actions), maxActions)
		b, fault := write(actions[:n])
		if fault != nil {
			return status.Error(codes.Internal, fault.Error())
		}
		if err := s.grpc.SendMsg(message.Encode(b)); err != nil {
			return err
		}
		actions = actions[n:]
	}
	if err != nil {
		return s.refuse(err)
	}
	return nil
}

// refuse returns the status of a message that was not applied.
func (s *stream) refuse(err error) error {
	st := message.StatusOf(err)
	if st.Code() == codes.InvalidArgument {
		s.service.recorder.Malformed(server.EdgeRLQS)
	}
	return st.Err()
}
