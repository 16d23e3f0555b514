package main

import (
	"context"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"google.golang.org/grpc"
)

// The range of latencies: 1 µs to 1 min, to three digits.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Minute)
	digits   = 3
)

func newHistogram() *hdr.Histogram { return hdr.New(shortest, longest, digits) }

// latencies counts how long calls took that were to start at an instant or
// later. It is safe for concurrent use; at the rates of calls here its lock
// is next to never waited for.
type latencies struct {
	from time.Time // written before the first call
	mu   sync.Mutex
	hist *hdr.Histogram
}

func newLatencies() *latencies { return &latencies{hist: newHistogram()} }

// add counts a call that has just been answered.
func (l *latencies) add(start time.Time) {
	if start.Before(l.from) {
		return
	}
	took := min(int64(time.Since(start)), longest)
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.hist.RecordValue(took) // within the range nothing can fail
}

// summarize fills in what r has of calls.
func (l *latencies) summarize(r *result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Checks, r.Took = l.hist.TotalCount(), l.hist.Export()
}

// mergeInto adds the calls of a result to a histogram of the same range.
func (r *result) mergeInto(h *hdr.Histogram) { h.Merge(hdr.Import(r.Took)) }

// quantiles returns a quantile of the latencies of each round, one slice a
// side.
func quantiles(rounds [][]*hdr.Histogram, quantile float64) [][]float64 {
	readings := make([][]float64, len(rounds[0]))
	for _, sides := range rounds {
		for i, h := range sides {
			readings[i] = append(readings[i], float64(h.ValueAtQuantile(quantile)))
		}
	}
	return readings
}

// openCallers bounds the calls in flight of an open loop. When all wait, the
// next call starts late and its latency counts from when it was planned.
const openCallers = 256

// plan hands out the planned instants of an open loop, one each interval, and
// waits for each. It is safe for concurrent use: callers wait in turn.
type plan struct {
	mu       sync.Mutex
	next     time.Time
	end      time.Time
	interval time.Duration
	sleep    func(until time.Time)
}

// newPlan returns the schedule of an open loop from start on.
func newPlan(start time.Time, j *job) *plan {
	return &plan{
		next: start, end: start.Add(j.Warm + j.Length), interval: time.Second / time.Duration(j.Rate),
		sleep: sleepUntil,
	}
}

// wait returns at the next planned instant, or false after the last. It
// returns at once for those that have passed.
func (p *plan) wait() (planned time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.next.Before(p.end) {
		return time.Time{}, false
	}
	planned = p.next
	p.next = p.next.Add(p.interval)
	p.sleep(planned)
	return planned, true
}

// open starts calls at planned instants and measures each from its instant.
func (c *client) open(ctx context.Context, conns []*grpc.ClientConn, j job) (result, error) {
	all := c.callers(conns, openCallers, &j)
	start := time.Now().Add(time.Millisecond)
	all[0].took.from = start.Add(j.Warm)
	p := newPlan(start, &j)
	return together(all, func(c *caller) error {
		for planned, ok := p.wait(); ok; planned, ok = p.wait() {
			if err := c.call(ctx, planned); err != nil {
				return err
			}
		}
		return nil
	})
}
