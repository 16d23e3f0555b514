package swim

import (
	"sync"
	"time"
)

// slack is a margin for goroutines that run after a timer.
const slack = 50 * time.Millisecond

// probes computes how long memberlist may wait for answers after its shutdown.
// It does not interrupt these waits, and offers no way to query them.
type probes struct {
	mu       sync.Mutex
	answered time.Time // start of the latest probe that was answered
	company  time.Time // the latest time with another member
}

// pong records the answer to a probe.
func (p *probes) pong(rtt time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = time.Now().Add(-rtt)
}

// gone records the loss of a member.
func (p *probes) gone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.company = time.Now()
}

// pending returns how long memberlist may still wait after a shutdown at now,
// with so many other members.
func (p *probes) pending(now time.Time, others int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	const longest = maxUnwell * probeInterval
	switch {
	case others == 0 && now.Sub(p.company) > longest:
		return 0
	case others > 0 && now.Sub(p.answered) < probeInterval*4/5:
		// The last probe is over and the next one was not due, but a probe on
		// behalf of another member may be running.
		return probeTimeout + slack
	}
	return longest + slack
}
