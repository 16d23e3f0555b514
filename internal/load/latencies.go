package load

import (
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The range of latencies: 1 µs to 10 min, to three digits. Longer ones count as
// Longest.
const (
	shortest = int64(time.Microsecond)
	Longest  = 10 * time.Minute
	digits   = 3
)

// NewHistogram returns a histogram of latencies in nanoseconds.
func NewHistogram() *hdr.Histogram { return hdr.New(shortest, int64(Longest), digits) }

// Record adds a latency to a histogram.
func Record(h *hdr.Histogram, took time.Duration) {
	_ = h.RecordValue(int64(min(max(took, 0), Longest))) // within the range nothing can fail
}

// Latencies counts how long calls took that were due at an instant or later. It
// is safe for concurrent use; at the rates of calls here its lock is next to
// never waited for.
type Latencies struct {
	from time.Time
	mu   sync.Mutex
	hist *hdr.Histogram
}

// NewLatencies returns the latencies of calls that are due at an instant or
// later.
func NewLatencies(from time.Time) *Latencies { return &Latencies{from: from, hist: NewHistogram()} }

// Add counts a call that has just been answered.
func (l *Latencies) Add(due time.Time) {
	if due.Before(l.from) {
		return
	}
	took := time.Since(due)
	l.mu.Lock()
	defer l.mu.Unlock()
	Record(l.hist, took)
}

// Snapshot returns the number of calls and their latencies.
func (l *Latencies) Snapshot() (int64, *hdr.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hist.TotalCount(), l.hist.Export()
}
