package link

import (
	"math/rand/v2"
	"time"
)

// The time before a target is dialed again.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
	// stableAfter is the time after which a lost stream is dialed again with
	// minBackoff.
	stableAfter = 10 * time.Second
)

// backoff is the wait between two attempts at one target. The zero value is
// ready.
type backoff struct{ most time.Duration }

// next returns the next wait: random between minBackoff and a bound that
// doubles up to maxBackoff, so that the peers of a restarted daemon do not dial
// at the same time.
func (b *backoff) next() time.Duration {
	b.most = min(maxBackoff, max(2*minBackoff, 2*b.most))
	return minBackoff + rand.N(b.most-minBackoff+1)
}

// reset makes the next wait short.
func (b *backoff) reset() { b.most = 0 }

// longest makes the next wait up to maxBackoff.
func (b *backoff) longest() { b.most = maxBackoff }
