package grpchost

import (
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// Calls that begin suddenly, and are incomplete or cancelled at once, are no
// work for a client and much for us. Those of all connections together are
// begun at a pace, so that calls on other listeners find a processor.
const (
	// suddenCalls is how many such calls one read must bring to be delayed.
	suddenCalls = 16
	// suddenRate is how many of them begin in a second, suddenBurst at once.
	suddenRate, suddenBurst = 1_000, 16
	// partCalls is about how many of them begin one after the other.
	partCalls = 4
	// maxDelay is more than all calls that may be incomplete wait.
	maxDelay = 2 * maxIncomplete * time.Second / suddenRate
)

// newPace returns the pace of all connections of a server.
func newPace() *rate.Limiter { return rate.NewLimiter(suddenRate, suddenBurst) }

// delay returns for how long a read that brought n sudden calls waits, false
// where too many wait already.
func delay(pace *rate.Limiter, n int, now time.Time) (d time.Duration, ok bool) {
	if n < suddenCalls {
		return 0, true
	}
	for ; n > 0; n -= suddenBurst {
		r := pace.ReserveN(now, min(n, suddenBurst))
		if d = r.DelayFrom(now); d > maxDelay {
			r.CancelAt(now)
			return 0, false
		}
	}
	return d, true
}

// parts are the bytes of a read that brought sudden calls. They are handed on
// in parts, so that no processor is busy with all of the calls at once.
type parts struct {
	bytes []byte
	size  int       // of a part, in bytes
	last  time.Time // when the last part is due
}

// newParts returns a copy of the bytes of a read that brought some sudden
// calls, of which the last one is due at an instant.
func newParts(b []byte, calls int, last time.Time) parts {
	return parts{slices.Clone(b), max(1, len(b)*partCalls/max(calls, partCalls)), last}
}

// next takes the next part, of at most some bytes, and returns when it is due.
func (p *parts) next(most int) (part []byte, at time.Time) {
	n := min(p.size, most, len(p.bytes))
	part, p.bytes = p.bytes[:n], p.bytes[n:]
	after := time.Duration(len(p.bytes) / p.size) // parts after it
	return part, p.last.Add(-after * partCalls * time.Second / suddenRate)
}
