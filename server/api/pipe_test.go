package api_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/server/api"
	"github.com/georld/rld/server/message"
)

// pipe is a stream without a network: both directions hold nothing, so a sender
// waits until the other side receives its message.
type pipe struct {
	grpc.ServerStream
	codec   message.Codec
	ctx     context.Context
	cancel  context.CancelFunc
	asked   chan []byte
	answers chan *rldv1.AnswerFrame
	ended   chan error // how the handler ended
	caught  any        // the value of a panic
}

// open starts a stream of a service.
func open(s *api.Service) *pipe { return openFrom(s, context.Background()) }

// openFrom is open for a stream with a context.
func openFrom(s *api.Service, ctx context.Context) *pipe {
	p := &pipe{
		codec: message.NewCodec(), asked: make(chan []byte),
		answers: make(chan *rldv1.AnswerFrame), ended: make(chan error, 1),
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	h := register(s)
	go func() {
		defer p.cancel() // As gRPC does when a handler returns.
		defer func() {
			if p.caught = recover(); p.caught != nil {
				p.ended <- errors.New("panicked")
			}
		}()
		p.ended <- h.desc.Streams[0].Handler(h.server, p)
	}()
	return p
}

func (p *pipe) Context() context.Context { return p.ctx }

func (p *pipe) RecvMsg(m any) error {
	select {
	case b, ok := <-p.asked:
		if !ok {
			return io.EOF
		}
		return p.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, m)
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

func (p *pipe) SendMsg(m any) error {
	b, err := p.codec.Marshal(m)
	if err != nil {
		return err
	}
	defer b.Free()
	f := new(rldv1.AnswerFrame)
	if err := proto.Unmarshal(b.Materialize(), f); err != nil {
		return err
	}
	select {
	case p.answers <- f:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// ask sends a frame, unless the stream ends first.
func (p *pipe) ask(t *testing.T, checks ...*rldv1.CheckRequest) bool {
	t.Helper()
	b, err := proto.Marshal(&rldv1.CheckFrame{Checks: checks})
	if err != nil {
		t.Error(err)
	}
	select {
	case p.asked <- b:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// rest reads answers until the stream ends and returns them and how it ended.
func (p *pipe) rest() (list []*rldv1.CheckResponse, end error) {
	for {
		select {
		case f := <-p.answers:
			list = append(list, f.Answers...)
		case end = <-p.ended:
			return list, end
		}
	}
}

// ids returns the ids of answers.
func ids(list []*rldv1.CheckResponse) []uint64 {
	out := make([]uint64, len(list))
	for i, a := range list {
		out[i] = a.Id
	}
	return out
}

// upTo returns the ids from 1 to n.
func upTo(n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = uint64(i + 1)
	}
	return out
}

func wantIDs(t *testing.T, got []*rldv1.CheckResponse, n int) {
	t.Helper()
	if !slices.Equal(ids(got), upTo(n)) {
		t.Errorf("answered %v, want 1 to %d in order", ids(got), n)
	}
}
