package grpchost

import (
	"time"

	"golang.org/x/time/rate"
)

// Calls that begin suddenly, and are incomplete or cancelled at once, are no
// work for a client and much for us. Those of all connections together are
// begun at a pace, so that calls on other listeners find a processor.
const (
	// suddenCalls is how many such calls one read must bring to be delayed.
	suddenCalls = 8
	// suddenRate is how many of them begin in a second, suddenBurst at once.
	suddenRate, suddenBurst = 2_000, 50
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
