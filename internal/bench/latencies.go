package main

import (
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

// latencies counts how long calls took. It is safe for concurrent use; at the
// rates of calls here its lock is next to never waited for.
type latencies struct {
	mu   sync.Mutex
	hist *hdr.Histogram
}

func newLatencies() *latencies { return &latencies{hist: hdr.New(shortest, longest, digits)} }

func (l *latencies) add(took time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hist.RecordValue(min(int64(took), longest))
}

// summarize fills in what r has of calls.
func (l *latencies) summarize(r *result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Checks = l.hist.TotalCount()
	r.P50 = time.Duration(l.hist.ValueAtQuantile(50))
	r.P99 = time.Duration(l.hist.ValueAtQuantile(99))
}
