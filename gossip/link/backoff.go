package link

import (
	"math/rand/v2"
	"time"
)

// How long a target waits before it is dialed again.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
	// stableAfter is how long a stream must have been up for the next one to
	// be dialed soon.
	stableAfter = 10 * time.Second
)

// backoff is the wait between two attempts at one target. The zero value is
// ready.
type backoff struct{ most time.Duration }

// next returns the next wait: at random, from minBackoff to a bound that
// doubles up to maxBackoff, so that not all peers of a restarted daemon come
// at once.
func (b *backoff) next() time.Duration {
	b.most = min(maxBackoff, max(2*minBackoff, 2*b.most))
	return minBackoff + rand.N(b.most-minBackoff+1)
}

// reset makes the next wait short.
func (b *backoff) reset() { b.most = 0 }

// longest makes the next wait one of the long ones.
func (b *backoff) longest() { b.most = maxBackoff }
