package swim

import (
	"sync"
	"time"
)

// slack is for what runs after a timer.
const slack = 50 * time.Millisecond

// probes knows how long memberlist may still be waiting for answers after it
// was shut down: it does not stop to wait, and nothing can be asked about it.
type probes struct {
	mu       sync.Mutex
	answered time.Time // start of the last probe that was answered
	company  time.Time // when there was last another member
}

// pong takes the answer to a probe.
func (p *probes) pong(rtt time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = time.Now().Add(-rtt)
}

// gone takes the loss of a member.
func (p *probes) gone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.company = time.Now()
}

// pending returns how long something may still wait after a shutdown at now,
// with so many other members.
func (p *probes) pending(now time.Time, others int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	const longest = maxUnwell * probeInterval
	switch {
	case others == 0 && now.Sub(p.company) > longest:
		return 0
	case others > 0 && now.Sub(p.answered) < probeInterval*4/5:
		// The last probe is over and the next one was not due. But a probe
		// that another asked us to make may be under way.
		return probeTimeout + slack
	}
	return longest + slack
}
