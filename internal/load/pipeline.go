package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// Pipelines is a load of CheckStreams, one over each connection, which share
// the checks in flight.
type Pipelines struct {
	Domain string
	// Descriptors are those of each check in turn. The messages are shared by
	// the checks and never written.
	Descriptors [][]*rldv1.Descriptor
	Once        bool // each of Descriptors once, and not until Length has passed
	Flight      int  // checks in flight
	Frame       int  // checks a message
	// Rate is the checks a second, 0 for as many as the streams carry.
	Rate   int
	Length time.Duration
	// Window counts the answers of each window of that length, and accepts
	// denials. With 0, a denial is an error.
	Window time.Duration
	// Overtaken accepts answers in another order than that of the checks.
	Overtaken bool
}

// Streamed is what became of the checks.
type Streamed struct {
	Checks  int64         // answered
	Elapsed time.Duration // until the last answer
	Windows []Tally       // those that the load went on for from end to end
}

// pipeline is one CheckStream: a goroutine that sends, one that receives, and
// a bounded number of checks between them.
type pipeline struct {
	*Pipelines
	stream   grpc.BidiStreamingClient[rldv1.CheckFrame, rldv1.AnswerFrame]
	window   *semaphore.Weighted // checks in flight
	asked    [][]*rldv1.Descriptor
	schedule *Schedule // of frames; nil: as fast as they go
	answered uint64
	// sent and received are the sums of the ids of all checks and of all
	// answers. They are equal when each check has one answer.
	sent, received uint64
	tallies        *tallies // of what comes back; nil: nothing may be refused
}

// Run runs a pipeline over each connection.
func (o *Pipelines) Run(ctx context.Context, conns []*grpc.ClientConn) (Streamed, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running, ctx := errgroup.WithContext(ctx)
	lines := make([]*pipeline, len(conns))
	var counted *tallies
	if o.Window > 0 {
		counted = newTallies(o.Window)
	}
	begin := time.Now()
	for i, conn := range conns {
		s, err := rldv1.NewRateLimiterClient(conn).CheckStream(ctx)
		if err != nil {
			return Streamed{}, err
		}
		lines[i] = &pipeline{
			Pipelines: o, stream: s, window: semaphore.NewWeighted(int64(o.Flight / len(conns))),
			asked: o.part(i, len(conns)), tallies: counted,
		}
		if o.Rate > 0 {
			lines[i].schedule = o.frames(i, len(conns), begin)
		}
	}
	start := time.Now()
	for _, p := range lines {
		running.Go(func() error { return p.send(ctx, start.Add(o.Length)) })
		running.Go(p.receive)
	}
	err := running.Wait()
	r := Streamed{Elapsed: time.Since(start)}
	for _, p := range lines {
		if err == nil && p.received != p.sent {
			err = errors.New("the answers are not those of the checks")
		}
		r.Checks += int64(p.answered)
	}
	r.Windows = counted.whole(start, start.Add(o.Length))
	return r, err
}

// part returns the descriptors of the i-th of n pipelines. The pipelines share
// them when each is asked once.
func (o *Pipelines) part(i, n int) (all [][]*rldv1.Descriptor) {
	if !o.Once {
		return o.Descriptors
	}
	for ; i < len(o.Descriptors); i += n {
		all = append(all, o.Descriptors[i])
	}
	return all
}

// frames returns the schedule of the i-th of n pipelines: its frames lie evenly
// between those of the others.
func (o *Pipelines) frames(i, n int, begin time.Time) *Schedule {
	each := float64(o.Frame) / float64(o.Rate) // seconds between two frames of all
	first := begin.Add(time.Duration(float64(i) * each * float64(time.Second)))
	return Constant(first, begin.Add(o.Length), 1/(each*float64(n)), Longest)
}

// send sends checks until the end, then closes its direction of the stream.
func (p *pipeline) send(ctx context.Context, end time.Time) error {
	n := uint64(len(p.asked))
	more := func(id uint64) bool {
		switch {
		case p.Once:
			return id < n
		case p.schedule != nil:
			_, ok := p.schedule.Wait(ctx)
			return ok
		}
		return time.Now().Before(end)
	}
	for id := uint64(0); more(id); {
		f := &rldv1.CheckFrame{}
		for len(f.Checks) < p.Frame && (!p.Once || id < n) {
			f.Checks = append(f.Checks, &rldv1.CheckRequest{Id: id, Domain: p.Domain, Descriptors: p.asked[id%n]})
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
			if !p.Overtaken && a.Id != p.answered || a.Code != rldv1.Code_ALLOWED && p.tallies == nil {
				return fmt.Errorf("answer %v, want check %d allowed", a, p.answered)
			}
			p.answered++
			p.received += a.Id
		}
		p.tallies.add(time.Now(), f.Answers)
		p.window.Release(int64(len(f.Answers)))
	}
}
