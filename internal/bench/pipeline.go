package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// pipeline is one CheckStream: a goroutine that sends, one that receives, and
// a bounded number of checks between them.
type pipeline struct {
	stream   grpc.BidiStreamingClient[rldv1.CheckFrame, rldv1.AnswerFrame]
	window   *window
	frame    int // checks a message
	asked    [][]*rldv1.Descriptor
	once     bool // each of asked, and not until a time
	answered uint64
}

// stream runs a pipeline over each connection and shares the checks in flight
// between them.
func (c *client) stream(ctx context.Context, conns []*grpc.ClientConn, j job) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make([]*pipeline, len(conns))
	for i, conn := range conns {
		s, err := rldv1.NewRateLimiterClient(conn).CheckStream(ctx)
		if err != nil {
			return result{}, err
		}
		lines[i] = &pipeline{
			stream: s, frame: j.Frame, window: newWindow(j.Flight / len(conns)),
			asked: descriptors(i, len(conns), max(j.Keys, users)), once: j.Keys > 0,
		}
	}
	errs := make([]error, 2*len(lines))
	var running sync.WaitGroup
	start := time.Now()
	for i, p := range lines {
		running.Go(func() { errs[2*i] = p.send(start.Add(j.Length)) })
		running.Go(func() {
			if errs[2*i+1] = p.receive(); errs[2*i+1] != nil {
				cancel()
			}
		})
	}
	running.Wait()
	r := result{Elapsed: time.Since(start)}
	for _, p := range lines {
		r.Checks += int64(p.answered)
	}
	return r, errors.Join(errs...)
}

// descriptors returns what the checks of the i-th of n pipelines ask, which
// share the users between them when each is asked once. The messages are
// shared by the checks and never written.
func descriptors(i, n, keys int) [][]*rldv1.Descriptor {
	if keys == users {
		i, n = 0, 1
	}
	var all [][]*rldv1.Descriptor
	for u := i; u < keys; u += n {
		all = append(all, []*rldv1.Descriptor{{Entries: []*rldv1.Entry{{Key: benchKey, Value: userName(u)}}}})
	}
	return all
}

// send asks until the end, then says that it has asked all it wants.
func (p *pipeline) send(end time.Time) error {
	n := uint64(len(p.asked))
	more := func(id uint64) bool {
		if p.once {
			return id < n
		}
		return time.Now().Before(end)
	}
	for id := uint64(0); more(id); {
		f := &rldv1.CheckFrame{}
		for len(f.Checks) < p.frame && (!p.once || id < n) {
			f.Checks = append(f.Checks, &rldv1.CheckRequest{Id: id, Domain: benchDomain, Descriptors: p.asked[id%n]})
			id++
		}
		if !p.window.take(len(f.Checks)) {
			return nil // The receiver knows why.
		}
		if err := p.stream.Send(f); err != nil {
			if err == io.EOF {
				return nil // Likewise.
			}
			return err
		}
	}
	return p.stream.CloseSend()
}

// receive takes the answers, which come in the order of the checks.
func (p *pipeline) receive() error {
	defer p.window.close()
	for {
		f, err := p.stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, a := range f.Answers {
			if a.Id != p.answered || a.Code != rldv1.Code_ALLOWED {
				return fmt.Errorf("answer %v, want check %d allowed", a, p.answered)
			}
			p.answered++
		}
		p.window.give(len(f.Answers))
	}
}

// window bounds what is in flight. It is safe for concurrent use.
type window struct {
	mu     sync.Mutex
	change sync.Cond
	free   int
	closed bool
}

func newWindow(size int) *window {
	w := &window{free: size}
	w.change.L = &w.mu
	return w
}

// take waits for room for n and takes it; false when the window was closed.
func (w *window) take(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.free < n && !w.closed {
		w.change.Wait()
	}
	w.free -= n
	return !w.closed
}

// give gives the room of n back.
func (w *window) give(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free += n
	w.change.Signal()
}

// close lets those who wait go.
func (w *window) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.change.Broadcast()
}
