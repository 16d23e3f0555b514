package link

import "time"

// Bounds of an accepted stream. A daemon sends some 10 frames a second to a
// peer, up to a hundred when keys are near their limits, and up to one for each
// call about a strict key; beyond 10,000 calls a second they share frames.
const (
	framesPerSecond = 20_000
	bytesPerSecond  = 64 << 20
	// listsPerSecond bounds the lists of an acceptor, which sends at most 10.
	listsPerSecond = 50
	// rateBurst is the burst of a rate in seconds, for pauses of this process.
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

// take reports whether n may pass at now, and charges it.
func (b *bucket) take(n float64, now time.Time) bool {
	b.level = min(b.rate*rateBurst, b.level+now.Sub(b.last).Seconds()*b.rate)
	b.last = now
	if b.level < n {
		return false
	}
	b.level -= n
	return true
}

// limiter bounds the rates of one stream.
type limiter struct{ frames, bytes bucket }

func newLimiter(now time.Time) *limiter {
	return &limiter{frames: newBucket(framesPerSecond, now), bytes: newBucket(bytesPerSecond, now)}
}

// frame charges a frame of a size, and returns an error beyond the rates.
func (l *limiter) frame(size int, now time.Time) error {
	if !l.frames.take(1, now) {
		return protocolError(ReasonRate, "more than %d frames a second", framesPerSecond)
	}
	return l.more(size, now)
}

// more charges further bytes, and returns an error beyond the rate.
func (l *limiter) more(size int, now time.Time) error {
	if !l.bytes.take(float64(size), now) {
		return protocolError(ReasonRate, "more than %d MiB a second", bytesPerSecond>>20)
	}
	return nil
}
