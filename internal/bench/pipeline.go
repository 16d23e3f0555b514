package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// pipeline is one CheckStream: a goroutine that sends, one that receives, and
// a bounded number of checks between them.
type pipeline struct {
	stream   grpc.BidiStreamingClient[rldv1.CheckFrame, rldv1.AnswerFrame]
	window   *semaphore.Weighted // checks in flight
	frame    int                 // checks a message
	asked    [][]*rldv1.Descriptor
	once     bool  // each of asked, and not until a time
	plan     *plan // of frames; nil: as fast as they go
	inOrder  bool  // answers come in the order of the checks
	answered uint64
	// sent and received are the sums of the ids of all checks and of all
	// answers. They are equal when each check has one answer.
	sent, received uint64
	tallies        *tallies // of what comes back; nil: nothing may be refused
}

// stream runs a pipeline over each connection and shares the checks in flight
// between them.
func (c *client) stream(ctx context.Context, conns []*grpc.ClientConn, j job) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running, ctx := errgroup.WithContext(ctx)
	lines := make([]*pipeline, len(conns))
	var counted *tallies
	if j.Window > 0 {
		counted = newTallies(j.Window)
	}
	begin := time.Now()
	for i, conn := range conns {
		s, err := rldv1.NewRateLimiterClient(conn).CheckStream(ctx)
		if err != nil {
			return result{}, err
		}
		lines[i] = &pipeline{
			stream: s, frame: j.Frame, window: semaphore.NewWeighted(int64(j.Flight / len(conns))),
			asked: descriptors(i, len(conns), &j), once: j.Keys > 0,
			tallies: counted,
			inOrder: j.Ask.Key == "", // a check that waits for an owner is overtaken
		}
		if j.Rate > 0 {
			lines[i].plan = framePlan(i, len(conns), begin, &j)
		}
	}
	start := time.Now()
	for _, p := range lines {
		running.Go(func() error { return p.send(start.Add(j.Length)) })
		running.Go(p.receive)
	}
	err := running.Wait()
	r := result{Elapsed: time.Since(start)}
	for _, p := range lines {
		if err == nil && p.received != p.sent {
			err = errors.New("the answers are not those of the checks")
		}
		r.Checks += int64(p.answered)
	}
	r.Windows = counted.whole(start, start.Add(j.Length))
	return r, err
}

// descriptors returns the descriptors of the i-th of n pipelines. The pipelines
// share the users when each user is asked once. The messages are shared by the
// checks and never written.
func descriptors(i, n int, j *job) [][]*rldv1.Descriptor {
	numbers := j.Ask.Users
	if numbers == nil {
		numbers = numbered(max(j.Keys, users))
	}
	if j.Keys == 0 {
		i, n = 0, 1
	} else {
		numbers = numbers[:min(j.Keys, len(numbers))]
	}
	var all [][]*rldv1.Descriptor
	for ; i < len(numbers); i += n {
		all = append(all, []*rldv1.Descriptor{{
			Entries: []*rldv1.Entry{{Key: j.Ask.key(), Value: userName(numbers[i])}},
		}})
	}
	return all
}

// framePlan returns the schedule of the i-th of n pipelines: its frames lie
// evenly between those of the others.
func framePlan(i, n int, begin time.Time, j *job) *plan {
	each := time.Duration(j.Frame) * time.Second / time.Duration(j.Rate)
	return &plan{
		next: begin.Add(each * time.Duration(i)), end: begin.Add(j.Length), interval: each * time.Duration(n),
		sleep: sleepUntil,
	}
}

// send sends checks until the end, then closes its direction of the stream.
func (p *pipeline) send(end time.Time) error {
	n := uint64(len(p.asked))
	more := func(id uint64) bool {
		switch {
		case p.once:
			return id < n
		case p.plan != nil:
			_, ok := p.plan.wait()
			return ok
		}
		return time.Now().Before(end)
	}
	for id := uint64(0); more(id); {
		f := &rldv1.CheckFrame{}
		for len(f.Checks) < p.frame && (!p.once || id < n) {
			f.Checks = append(f.Checks, &rldv1.CheckRequest{Id: id, Domain: benchDomain, Descriptors: p.asked[id%n]})
			id++
		}
		if p.window.Acquire(p.stream.Context(), int64(len(f.Checks))) != nil {
			return nil // The receiver knows why the stream ended.
		}
		for _, c := range f.Checks {
			p.sent += c.Id
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

// receive takes the answers.
func (p *pipeline) receive() error {
	for {
		f, err := p.stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, a := range f.Answers {
			if p.inOrder && a.Id != p.answered || a.Code != rldv1.Code_ALLOWED && p.tallies == nil {
				return fmt.Errorf("answer %v, want check %d allowed", a, p.answered)
			}
			p.answered++
			p.received += a.Id
		}
		p.tallies.add(time.Now(), f.Answers)
		p.window.Release(int64(len(f.Answers)))
	}
}

// tally counts the answers of one window.
type tally struct {
	Allowed, Refused int64
}

// tallies are those of all pipelines, by window of the wall clock. It is safe
// for concurrent use.
type tallies struct {
	window time.Duration
	mu     sync.Mutex
	all    map[int64]tally // by number of the window
}

func newTallies(window time.Duration) *tallies {
	return &tallies{window: window, all: make(map[int64]tally)}
}

// add counts the answers of a frame. A decision just before the end of a window
// counts in the next one, so limits must be used up before a window ends.
func (t *tallies) add(at time.Time, answers []*rldv1.CheckResponse) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := at.UnixNano() / int64(t.window)
	w := t.all[n]
	for _, a := range answers {
		if a.Code == rldv1.Code_ALLOWED {
			w.Allowed++
		} else {
			w.Refused++
		}
	}
	t.all[n] = w
}

// whole returns the windows that lie between two instants, empty ones too.
func (t *tallies) whole(from, to time.Time) []tally {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []tally
	size := int64(t.window)
	for n := (from.UnixNano() + size - 1) / size; (n+1)*size <= to.UnixNano(); n++ {
		out = append(out, t.all[n])
	}
	return out
}
