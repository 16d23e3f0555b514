package link

import "time"

// What an accepted stream may send. A daemon sends some 10 frames a second to
// a peer, up to a hundred when keys are near their limits, and up to one for each
// call about a strict key; beyond 10,000 of these share frames.
const (
	framesPerSecond = 20_000
	bytesPerSecond  = 64 << 20
	// listsPerSecond is what an acceptor may send back; it sends 10 at most.
	listsPerSecond = 50
	// rateBurst is how many seconds' worth may come at once, as after a
	// pause of this process.
	rateBurst = 2
)

// bucket is a token bucket. It is not safe for concurrent use.
type bucket struct {
	rate  float64 // a second
	level float64
	last  time.Time
}

func newBucket(rate float64, now time.Time) bucket {
	return bucket{rate: rate, level: rate * rateBurst, last: now}
}

// take reports whether n may pass at now.
func (b *bucket) take(n float64, now time.Time) bool {
	b.level = min(b.rate*rateBurst, b.level+now.Sub(b.last).Seconds()*b.rate)
	b.last = now
	if b.level < n {
		return false
	}
	b.level -= n
	return true
}

// limiter holds one stream to its rates.
type limiter struct{ frames, bytes bucket }

func newLimiter(now time.Time) *limiter {
	return &limiter{frames: newBucket(framesPerSecond, now), bytes: newBucket(bytesPerSecond, now)}
}

// frame returns an error when a frame of a size is more than may pass.
func (l *limiter) frame(size int, now time.Time) error {
	if !l.frames.take(1, now) {
		return protocolErrors(ReasonRate, "more than %d frames a second", framesPerSecond)
	}
	return l.more(size, now)
}

// more returns an error when further bytes are more than may pass.
func (l *limiter) more(size int, now time.Time) error {
	if !l.bytes.take(float64(size), now) {
		return protocolErrors(ReasonRate, "more than %d MiB a second", bytesPerSecond>>20)
	}
	return nil
}
