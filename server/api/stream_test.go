package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/api"
)

func TestHalfCloseFlushesAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := api.New(answers(), server.DefaultSettings(), nil)
		p := open(s)
		for i := range uint64(5) {
			p.ask(t, question(2*i+1, "a"), question(2*i+2, "b"))
		}
		close(p.asked)
		got, end := p.rest()
		if end != nil {
			t.Errorf("the stream ended with %v", end)
		}
		wantIDs(t, got, 10)
		s.Wait()
	})
}

// TestAnswersShareFrames shows that decisions made while a frame is on its way
// go out as one frame after it.
func TestAnswersShareFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(api.New(answers(), server.DefaultSettings(), nil))
		for i := range uint64(10) {
			p.ask(t, question(i+1, "v"))
			synctest.Wait()
		}
		first, second := <-p.answers, <-p.answers
		if len(first.Answers) != 1 || len(second.Answers) != 9 {
			t.Errorf("%d and %d answers in a frame, want 1 and 9", len(first.Answers), len(second.Answers))
		}
		wantIDs(t, append(first.Answers, second.Answers...), 10)
		close(p.asked)
		if _, end := p.rest(); end != nil {
			t.Error(end)
		}
	})
}

// TestFaultsAreAnswered puts every kind of bad question between good ones.
func TestFaultsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, rec := &engine{check: func(c *node.Call) error {
			switch c.Descriptors[0].Entries[0].Value {
			case "va\xffue":
				return &node.InputError{Descriptor: 0, Entry: 0, Problem: "value is not valid UTF-8"}
			case "failing":
				return fmt.Errorf("shard 3 is gone")
			}
			return nil
		}}, newRecorder()
		p := open(api.New(e, server.DefaultSettings(), rec))
		frame, err := proto.Marshal(&rldv1.CheckFrame{Checks: []*rldv1.CheckRequest{
			question(1, "good"), question(2, "vaXue"), question(3, "failing"),
			{Id: 4, Descriptors: []*rldv1.Descriptor{override(1, 0)}},
			question(5, "good"),
		}})
		if err != nil {
			t.Fatal(err)
		}
		bad := strings.Replace(string(frame), "vaXue", "va\xffue", 1)
		bad += "\x0a\x04\x08\x06\x1a\x07" // Question 6, whose descriptor is cut off.
		p.asked <- []byte(bad)
		close(p.asked)
		got, end := p.rest()
		if end != nil {
			t.Errorf("the stream ended with %v", end)
		}
		wantIDs(t, got, 6)
		for i, want := range []string{
			"", "3 descriptor 0, entry 0: value is not valid UTF-8", "13 shard 3 is gone",
			"3 descriptor 0: limit override without a unit; " +
				"want one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR", "",
			"3 malformed CheckRequest: message ends in the middle of a field",
		} {
			have := ""
			if f := got[i].Error; f != nil {
				have = fmt.Sprint(f.Code, " ", f.Message)
			}
			if have != want || (have != "") != (got[i].Code == rldv1.Code_CODE_UNSPECIFIED) {
				t.Errorf("question %d: answered %v, want the error %q", i+1, got[i], want)
			}
		}
		if c := rec.counts(server.EdgeStream); c != [2]int{1, 4} {
			t.Errorf("recorded %v decided and malformed, want 1 frame and 4 questions", c)
		}
	})
}

// TestTooManyChecksInAFrame asks two checks too many, and as many empty ones
// as fit a message: the answers are those of MaxChecks, whatever was sent.
func TestTooManyChecksInAFrame(t *testing.T) {
	many := &rldv1.CheckFrame{}
	for i := range api.MaxChecks + 2 {
		many.Checks = append(many.Checks, question(uint64(i+1), "v"))
	}
	good, err := proto.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	want := status.Error(codes.InvalidArgument, "more than 1024 checks in a frame: "+
		"the first 1024 are answered, the others go into further frames")
	for name, frame := range map[string]string{
		"good": string(good), "empty": strings.Repeat("\x0a\x00", 1<<21),
	} {
		synctest.Test(t, func(t *testing.T) {
			e, rec := answers(), newRecorder()
			s := api.New(e, server.DefaultSettings(), rec)
			p := open(s)
			p.asked <- []byte(frame)
			got, end := p.rest()
			if end == nil || end.Error() != want.Error() {
				t.Errorf("%s: the stream ended with %v, want %v", name, end, want)
			}
			if n := len(e.asks()); len(got) != api.MaxChecks || n != api.MaxChecks {
				t.Errorf("%s: %d checks decided and %d answered, want %d", name, n, len(got), api.MaxChecks)
			}
			if c := rec.counts(server.EdgeStream); c != [2]int{0, 1} {
				t.Errorf("%s: recorded %v decided and malformed, want one malformed frame", name, c)
			}
			s.Wait()
		})
	}
}

// TestMalformedFrameEndsTheStream and answers what came before.
func TestMalformedFrameEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(api.New(answers(), server.DefaultSettings(), nil))
		b, err := proto.Marshal(&rldv1.CheckFrame{Checks: []*rldv1.CheckRequest{question(1, "v")}})
		if err != nil {
			t.Fatal(err)
		}
		p.asked <- append(b, 0x0a, 0x05)
		got, end := p.rest()
		wantIDs(t, got, 1)
		want := status.Error(codes.InvalidArgument, "malformed CheckFrame: message ends in the middle of a field")
		if end == nil || end.Error() != want.Error() {
			t.Errorf("ended with %v, want %v", end, want)
		}
	})
}

// TestClientThatNeverReads shows the bound on what waits, that other streams
// do not notice, and that the stream goes away with its client.
//
// The outbox takes answers while it holds less than its bytes, so a batch is
// at most the number of answers that reaches them. One batch may be on its way
// to gRPC, another one wait, and the answer after it be decided and find no
// room. How large the batch on its way is depends on when the sender came: it
// is one answer when the client asks one question and the sender has taken the
// answer, and a whole one when a frame fills the outbox, which is what wakes
// the sender before the end of a frame.
func TestClientThatNeverReads(t *testing.T) {
	reply := &rldv1.CheckResponse{Id: 1, Code: rldv1.Code_ALLOWED, Statuses: []*rldv1.Status{
		{Code: rldv1.Code_ALLOWED, Rule: strings.Repeat("p", 1000)},
	}}
	size := proto.Size(&rldv1.AnswerFrame{Answers: []*rldv1.CheckResponse{reply}})
	batch := (api.OutboxBytes + size - 1) / size
	for _, tt := range []struct {
		name        string
		first, want int
	}{
		{"one answer on its way", 1, 1 + batch + 1},
		{"a batch on its way", 3 * batch, batch + batch + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { neverRead(t, reply.Statuses[0].Rule, tt.first, tt.want) })
		})
	}
}

// neverRead asks a frame of first questions, and then for good, and reads no
// answer: want questions are decided.
func neverRead(t *testing.T, path string, first, want int) {
	e := answers(node.Status{Rule: &rules.Rule{Path: path}})
	s := api.New(e, server.DefaultSettings(), nil)
	p := open(s)
	frame := make([]*rldv1.CheckRequest, first)
	for i := range frame {
		frame[i] = question(1, "v")
	}
	p.ask(t, frame...)
	synctest.Wait()
	go func() {
		for p.ask(t, question(1, "v"), question(1, "v")) {
		}
	}()
	synctest.Wait()
	if n := len(e.asks()); n != want {
		t.Errorf("%d questions were decided for a client that does not read, want %d", n, want)
	}
	other := open(s)
	other.ask(t, question(1, "v"))
	wantIDs(t, (<-other.answers).Answers, 1)
	close(other.asked)
	if _, end := other.rest(); end != nil {
		t.Error(end)
	}
	p.cancel()
	if _, end := p.rest(); !errors.Is(end, context.Canceled) {
		t.Errorf("the stream ended with %v", end)
	}
	s.Wait()
}

// TestDrainAnswersWhatWasDecided drains a stream whose client is slow: with
// answers waiting, a frame half decided, and one that nobody has read.
func TestDrainAnswersWhatWasDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := strings.Repeat("p", 1000)
		e := answers(node.Status{Rule: &rules.Rule{Path: path}})
		s := api.New(e, server.DefaultSettings(), nil)
		p := open(s)
		p.ask(t, question(1, "v"))
		synctest.Wait()
		frame := make([]*rldv1.CheckRequest, 100)
		for i := range frame {
			frame[i] = question(uint64(i+2), "v")
		}
		p.ask(t, frame...)
		synctest.Wait()
		if n := len(e.asks()); n < 20 || n > 60 {
			t.Fatalf("%d questions are decided, the frame should be half decided", n)
		}
		go p.ask(t, question(1000, "unread"))
		s.Drain()
		synctest.Wait()
		got, end := p.rest()
		wantIDs(t, got, 101)
		if status.Code(end) != codes.Unavailable {
			t.Errorf("the stream ended with %v", end)
		}
		if n := len(e.asks()); n != len(got) {
			t.Errorf("%d questions decided, %d answered", n, len(got))
		}
		s.Wait()
	})
}

func TestDrainEndsIdleAndLateStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := answers()
		s := api.New(e, server.DefaultSettings(), nil)
		idle := open(s)
		synctest.Wait()
		s.Drain()
		s.Drain()
		late := open(s)
		for _, p := range []*pipe{idle, late} {
			if got, end := p.rest(); len(got) > 0 || status.Code(end) != codes.Unavailable {
				t.Errorf("answered %v and ended with %v", got, end)
			}
			synctest.Wait() // until the end is everywhere
			if p.ask(t, question(1, "v")) {
				t.Error("a frame was read after the end")
			}
		}
		s.Wait()
		if n := len(e.asks()); n > 0 {
			t.Errorf("%d questions were decided", n)
		}
	})
}

// TestPanicReachesTheHandler brings a panic from the goroutine that decides
// to the one where a server catches it.
func TestPanicReachesTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{check: func(*node.Call) error { panic("broken invariant") }}
		s := api.New(e, server.DefaultSettings(), nil)
		p := open(s)
		p.ask(t, question(1, "v"))
		if _, end := p.rest(); end == nil || end.Error() != "panicked" {
			t.Errorf("the handler ended with %v", end)
		}
		text := fmt.Sprint(p.caught)
		for _, want := range []string{"broken invariant", "engine_test.go"} {
			if !strings.Contains(text, want) {
				t.Errorf("the panic does not tell of %q:\n%s", want, text)
			}
		}
		s.Wait()
	})
}

// TestWaitingForTheClientIsNotCounted reads the answers of a frame an hour
// late: the recorder gets the time that rld needed.
func TestWaitingForTheClientIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := strings.Repeat("p", 20_000)
		rec := new(stopwatch)
		p := open(api.New(answers(node.Status{Rule: &rules.Rule{Path: path}}), server.DefaultSettings(), rec))
		p.ask(t, question(1, "v"), question(2, "v"), question(3, "v"), question(4, "v"))
		close(p.asked)
		time.Sleep(time.Hour)
		got, _ := p.rest()
		wantIDs(t, got, 4)
		if took := rec.took(); len(took) != 1 || took[0] != 0 {
			t.Errorf("recorded %v, want one frame that took no time", took)
		}
	})
}

// stopwatch keeps its durations; time stands still while any goroutine works in
// a synctest bubble.
type stopwatch struct {
	server.NoRecorder
	mu   sync.Mutex
	list []time.Duration
}

func (s *stopwatch) Decided(_ server.Edge, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, took)
}

func (s *stopwatch) took() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

// TestStreamOverTheWire pipelines with the generated client.
func TestStreamOverTheWire(t *testing.T) {
	const frames, perFrame = 200, 8
	conn := dial(t, api.New(answers(node.Status{Rule: &rules.Rule{Path: "p"}}), server.DefaultSettings(), nil))
	stream, err := rldv1.NewRateLimiterClient(conn).CheckStream(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() {
		for i := range frames {
			f := new(rldv1.CheckFrame)
			for j := range perFrame {
				f.Checks = append(f.Checks, question(uint64(i*perFrame+j+1), "v"))
			}
			if err := stream.Send(f); err != nil {
				sent <- err
				return
			}
		}
		sent <- stream.CloseSend()
	}()
	var got []*rldv1.CheckResponse
	for {
		f, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f.Answers...)
	}
	wantIDs(t, got, frames*perFrame)
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// TestCancelOverTheWire ends a stream from the client's side.
func TestCancelOverTheWire(t *testing.T) {
	s := api.New(answers(), server.DefaultSettings(), nil)
	conn := dial(t, s) // Its clean-up waits for the reader of the stream.
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := rldv1.NewRateLimiterClient(conn).CheckStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&rldv1.CheckFrame{Checks: []*rldv1.CheckRequest{question(1, "v")}}); err != nil {
		t.Fatal(err)
	}
	if f, err := stream.Recv(); err != nil || len(f.Answers) != 1 {
		t.Fatalf("got %v, error %v", f, err)
	}
	cancel()
	s.Wait()
}

// TestDrainOverTheWire ends a stream that is being read.
func TestDrainOverTheWire(t *testing.T) {
	s := api.New(answers(), server.DefaultSettings(), nil)
	stream, err := rldv1.NewRateLimiterClient(dial(t, s)).CheckStream(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&rldv1.CheckFrame{Checks: []*rldv1.CheckRequest{question(1, "v")}}); err != nil {
		t.Fatal(err)
	}
	if f, err := stream.Recv(); err != nil || len(f.Answers) != 1 {
		t.Fatalf("got %v, error %v", f, err)
	}
	s.Drain()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	s.Wait()
}
