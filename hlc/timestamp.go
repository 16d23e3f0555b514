package hlc

import (
	"fmt"
	"math"
	"time"
)

// Timestamp is a hybrid logical timestamp: Unix milliseconds in the upper 48
// bits, and a counter of the stamps within that millisecond in the lower 16. It
// is ordered as an integer. The zero value is before every stamp of a clock.
type Timestamp uint64

const counterBits = 16

const (
	// MaxMillis is the last millisecond of a Timestamp, in the year 10889.
	MaxMillis = 1<<(64-counterBits) - 1
	// MaxTimestamp is the greatest Timestamp. No clock comes near it: an
	// Instant ends in 2262.
	MaxTimestamp = Timestamp(math.MaxUint64)
)

// New returns the timestamp of a Unix millisecond and a counter. Milliseconds
// below 0 count as 0, those above MaxMillis as MaxMillis.
func New(millis int64, counter uint16) Timestamp {
	millis = min(max(millis, 0), MaxMillis)
	return Timestamp(millis)<<counterBits | Timestamp(counter)
}

// Millis returns the Unix milliseconds, 0 to MaxMillis.
func (t Timestamp) Millis() int64 { return int64(t >> counterBits) }

// Counter returns the number of the stamp within its millisecond.
func (t Timestamp) Counter() uint16 { return uint16(t) }

// Next returns the smallest timestamp above t. A full counter carries into the
// milliseconds. MaxTimestamp returns itself.
func (t Timestamp) Next() Timestamp {
	if t == MaxTimestamp {
		return t
	}
	return t + 1
}

// Sub returns the milliseconds from u to t as a Duration, without counters. A
// result that does not fit saturates.
func (t Timestamp) Sub(u Timestamp) time.Duration {
	const limit = math.MaxInt64 / int64(time.Millisecond)
	ms := t.Millis() - u.Millis()
	return time.Duration(min(max(ms, -limit), limit)) * time.Millisecond
}

// String returns milliseconds and counter in decimal: "1700000000000.5".
func (t Timestamp) String() string { return fmt.Sprintf("%d.%d", t.Millis(), t.Counter()) }
