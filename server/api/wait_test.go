package api_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/api"
)

// far returns an engine that waits for an owner, for a time, where the value of
// a question begins with far.
func far(home time.Duration) *engine {
	e := answers(node.Status{})
	e.waiting = func(c *node.Call) bool { return strings.HasPrefix(c.Descriptors[0].Entries[0].Value, "far") }
	e.waits = func(ctx context.Context, c *node.Call) error {
		if c.Descriptors[0].Entries[0].Value == "far and broken" {
			panic("broken invariant")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(home):
			return nil
		}
	}
	return e
}

// TestWaitingQuestionsHoldUpNobody puts questions that wait among those that do
// not: these are answered at once and in order, the others when their owners
// have answered, all at the same time.
func TestWaitingQuestionsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := newRecorder()
		s := api.New(far(time.Minute), server.DefaultSettings(), rec)
		p := open(s)
		start := time.Now()
		p.ask(t, question(1, "a"), question(2, "far"), question(3, "b"), refundable(4, "far"), question(5, "c"))
		p.ask(t, question(6, "d"))
		var near []uint64 // in one frame or in two
		for len(near) < 4 {
			near = append(near, ids((<-p.answers).Answers)...)
		}
		if !slices.Equal(near, []uint64{1, 3, 5, 6}) || time.Since(start) > 0 {
			t.Errorf("answered %v after %v, want 1, 3, 5 and 6 at once", near, time.Since(start))
		}
		close(p.asked)
		late, end := p.rest()
		got := ids(late)
		slices.Sort(got)
		if !slices.Equal(got, []uint64{2, 4}) || end != nil || time.Since(start) != time.Minute {
			t.Errorf("answered %v and ended with %v after %v, want 2 and 4 after a minute", got, end, time.Since(start))
		}
		for _, a := range late {
			if token := a.Statuses[0].RefundToken; (len(token) > 0) != (a.Id == 4) {
				t.Errorf("question %d came with a token of %d bytes", a.Id, len(token))
			}
		}
		if c := rec.counts(server.EdgeStream); c != [2]int{4, 0} {
			t.Errorf("recorded %v decided and malformed, want 2 frames and 2 questions", c)
		}
		s.Wait()
	})
}

// refundable is a question whose hits may be given back.
func refundable(id uint64, value string) *rldv1.CheckRequest {
	q := question(id, value)
	q.Refundable = true
	return q
}

// TestTooManyWait shows that the reader waits when as many questions wait as
// may.
func TestTooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := api.New(far(time.Minute), server.DefaultSettings(), nil)
		p := open(s)
		start := time.Now()
		var frame []*rldv1.CheckRequest
		for i := range api.MaxWaiting + 1 {
			frame = append(frame, question(uint64(i+2), "far"))
		}
		p.ask(t, append(frame, question(1, "near"))...)
		close(p.asked)
		var at []time.Duration
		n := 0
		for done := false; !done; {
			select {
			case f := <-p.answers:
				n += len(f.Answers)
				at = append(at, time.Since(start))
			case end := <-p.ended:
				if end != nil {
					t.Error(end)
				}
				done = true
			}
		}
		if n != api.MaxWaiting+2 || at[0] != time.Minute {
			t.Errorf("%d answers, the first after %v, want %d after a minute", n, at[0], api.MaxWaiting+2)
		}
		s.Wait()
	})
}

// TestDrainAnswersWhatWaits drains a stream with a question that waits.
func TestDrainAnswersWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := api.New(far(time.Second), server.DefaultSettings(), nil)
		p := open(s)
		p.ask(t, question(1, "far"))
		synctest.Wait()
		s.Drain()
		got, end := p.rest()
		wantIDs(t, got, 1)
		if status.Code(end) != codes.Unavailable {
			t.Errorf("the stream ended with %v", end)
		}
		s.Wait()
	})
}

// TestWaitingEndsWithTheStream leaves nobody behind that waits for an owner.
func TestWaitingEndsWithTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := api.New(far(time.Hour), server.DefaultSettings(), nil)
		p := open(s)
		start := time.Now()
		p.ask(t, question(1, "far"))
		synctest.Wait()
		p.cancel()
		if _, end := p.rest(); status.Code(end) != codes.Canceled {
			t.Errorf("the stream ended with %v", end)
		}
		s.Wait()
		if time.Since(start) > 0 {
			t.Errorf("it took %v", time.Since(start))
		}
	})
}

// TestPanicOfAWaitingQuestion brings it to where a server catches it.
func TestPanicOfAWaitingQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := api.New(far(time.Hour), server.DefaultSettings(), nil)
		p := open(s)
		p.ask(t, question(1, "far and broken"))
		if _, end := p.rest(); end == nil || end.Error() != "panicked" {
			t.Errorf("the handler ended with %v", end)
		}
		s.Wait()
	})
}

// TestUnaryWaits has Check wait, for no longer than its caller does.
func TestUnaryWaits(t *testing.T) {
	cc := dial(t, api.New(far(20*time.Millisecond), server.DefaultSettings(), nil))
	client := rldv1.NewRateLimiterClient(cc)
	start := time.Now()
	if _, err := client.Check(t.Context(), question(1, "far")); err != nil || time.Since(start) < 20*time.Millisecond {
		t.Errorf("answered after %v: %v", time.Since(start), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := client.Check(ctx, question(1, "far")); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a caller that waits less than the home takes: %v", err)
	}
}
