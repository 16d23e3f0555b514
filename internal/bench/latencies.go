package main

import (
	"fmt"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The latencies that are told apart: 1 µs to 1 min, to three digits.
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
func (l *latencies) add(start time.Time) error {
	if start.Before(l.from) {
		return nil
	}
	took := min(int64(time.Since(start)), longest)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hist.RecordValue(took)
}

// summarize fills in what r has of calls.
func (l *latencies) summarize(r *result) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Checks = l.hist.TotalCount()
	var err error
	if r.Took, err = l.hist.Encode(hdr.V2CompressedEncodingCookieBase); err != nil {
		return fmt.Errorf("encoding latencies: %w", err)
	}
	return nil
}

// mergeInto adds the calls of a result to a histogram.
func (r *result) mergeInto(h *hdr.Histogram) error {
	took, err := hdr.Decode(r.Took)
	if err != nil {
		return fmt.Errorf("latencies of the client: %w", err)
	}
	if dropped := h.Merge(took); dropped > 0 {
		return fmt.Errorf("%d latencies of the client are out of range", dropped)
	}
	return nil
}
