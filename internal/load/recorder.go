package load

import (
	"context"
	"errors"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// lateAfter is how long after its instant a call is sent that counts as late:
// all others in flight waited for answers, or the machine was busy.
const lateAfter = time.Millisecond

const (
	// maxCodes bounds the codes of errors that are counted apart.
	maxCodes = 32
	// maxReason bounds the text of an error that is kept, in bytes.
	maxReason = 200
	// otherCodes counts the errors with further codes.
	otherCodes = "other"
)

// Recorder counts the calls of an open loop, failed ones too. It is safe for
// concurrent use.
type Recorder struct {
	from    time.Time
	timeout time.Duration

	mu     sync.Mutex
	all    Counts
	recent Counts // since the last call of Recent
}

// Counts is what became of calls.
type Counts struct {
	// Due is the calls that were due: all below together.
	Due     int64
	Allowed int64
	Denied  int64
	Failed  int64 // without an answer
	// Unsent is the calls that were due and never sent, since as many calls as
	// may be in flight waited for answers.
	Unsent int64
	// Late is the calls, of those above, that were sent a millisecond or more
	// after they were due.
	Late int64
	// Errors counts the failed calls by code.
	Errors map[string]*Errors
	// Took has the latency of each call that was due, from the instant that it
	// was due. One without an answer counts with the timeout at least, so that
	// no failure makes the latencies look better.
	Took *hdr.Histogram
}

// Errors is the calls that failed with a code.
type Errors struct {
	Calls int64
	First string // the text of the first one, cut off
}

func newCounts() Counts { return Counts{Errors: map[string]*Errors{}, Took: NewHistogram()} }

// Answered returns the calls that were answered.
func (c *Counts) Answered() int64 { return c.Allowed + c.Denied }

// NewRecorder returns a recorder of calls that are due at an instant or later,
// and which wait for answers for as long as the timeout.
func NewRecorder(from time.Time, timeout time.Duration) *Recorder {
	return &Recorder{from: from, timeout: timeout, all: newCounts(), recent: newCounts()}
}

// Done counts a result. It is a Done, and returns nil.
func (r *Recorder) Done(x Result) error {
	if x.Due.Before(r.from) {
		return nil
	}
	took := time.Since(x.Due)
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.recent
	c.Due++
	if x.Sent.Sub(x.Due) >= lateAfter {
		c.Late++
	}
	switch {
	case x.Err != nil:
		c.Failed++
		c.fail(x.Err)
		took = max(took, r.timeout)
	case x.Allowed:
		c.Allowed++
	default:
		c.Denied++
	}
	Record(c.Took, took)
	return nil
}

// Unsent counts the calls of a schedule that were due before an instant and
// were not sent.
func (r *Recorder) Unsent(s *Schedule, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Unsent(until, func(due time.Time) {
		if due.Before(r.from) {
			return
		}
		r.recent.Due++
		r.recent.Unsent++
		Record(r.recent.Took, max(until.Sub(due), r.timeout))
	})
}

// fail counts an error.
func (c *Counts) fail(err error) {
	code := codeOf(err)
	e := c.Errors[code]
	if e == nil && len(c.Errors) >= maxCodes {
		code = otherCodes
		e = c.Errors[code]
	}
	if e == nil {
		text := err.Error()
		if s, ok := status.FromError(err); ok {
			text = s.Message()
		}
		e = &Errors{First: text[:min(len(text), maxReason)]}
		c.Errors[code] = e
	}
	e.Calls++
}

// Code is an error that has a code of its own, such as an HTTP status.
type Code interface {
	error
	Code() string
}

// codeOf returns the code of an error: its own, or that of gRPC.
func codeOf(err error) string {
	if c, ok := errors.AsType[Code](err); ok {
		return c.Code()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded.String()
	}
	return status.Code(err).String()
}

// Recent returns the calls since the last time, and adds them to all.
func (r *Recorder) Recent() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.recent
	r.all.Add(&c)
	r.recent = newCounts()
	return c
}

// All returns all calls. The recorder counts no more.
func (r *Recorder) All() Counts {
	r.Recent()
	return r.all
}

// Add adds calls to others.
func (c *Counts) Add(more *Counts) {
	c.Due += more.Due
	c.Allowed += more.Allowed
	c.Denied += more.Denied
	c.Failed += more.Failed
	c.Unsent += more.Unsent
	c.Late += more.Late
	for code, e := range more.Errors {
		if c.Errors[code] == nil {
			c.Errors[code] = &Errors{First: e.First}
		}
		c.Errors[code].Calls += e.Calls
	}
	c.Took.Merge(more.Took)
}
