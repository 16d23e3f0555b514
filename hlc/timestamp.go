package hlc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
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

// Parse parses the result of String and nothing else: the two numbers in
// decimal without sign or leading zeros. So a stamp has one text.
func Parse(s string) (Timestamp, error) {
	millis, counter, found := strings.Cut(s, ".")
	if !found {
		return 0, fmt.Errorf("timestamp %q: want milliseconds.counter", s)
	}
	ms, err := parsePart(millis, 64-counterBits)
	if err != nil {
		return 0, fmt.Errorf("timestamp %q: milliseconds: %w", s, err)
	}
	c, err := parsePart(counter, counterBits)
	if err != nil {
		return 0, fmt.Errorf("timestamp %q: counter: %w", s, err)
	}
	return Timestamp(ms<<counterBits | c), nil
}

func parsePart(s string, bits int) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, bits)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, fmt.Errorf("want a decimal number from 0 to %d", uint64(1)<<bits-1)
	}
	return n, nil
}

// Millis returns the Unix milliseconds, 0 to MaxMillis.
func (t Timestamp) Millis() int64 { return int64(t >> counterBits) }

// Counter returns the number of the stamp within its millisecond.
func (t Timestamp) Counter() uint16 { return uint16(t) }

// Compare returns -1 if t is before u, 1 if it is after, 0 if they are equal.
func (t Timestamp) Compare(u Timestamp) int {
	switch {
	case t < u:
		return -1
	case t > u:
		return 1
	}
	return 0
}

// Before reports whether t is smaller than u.
func (t Timestamp) Before(u Timestamp) bool { return t < u }

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
func (t Timestamp) String() string { return string(t.append(nil)) }

// AppendText appends the result of String to b. It never fails.
func (t Timestamp) AppendText(b []byte) ([]byte, error) { return t.append(b), nil }

// MarshalText returns the result of String, so that JSON carries a stamp as
// text: as a number it would lose its last bits in most readers.
func (t Timestamp) MarshalText() ([]byte, error) { return t.append(nil), nil }

// UnmarshalText is Parse. After an error t is unchanged.
func (t *Timestamp) UnmarshalText(b []byte) error {
	u, err := Parse(string(b))
	if err != nil {
		return err
	}
	*t = u
	return nil
}

func (t Timestamp) append(b []byte) []byte {
	b = strconv.AppendInt(b, t.Millis(), 10)
	b = append(b, '.')
	return strconv.AppendUint(b, uint64(t.Counter()), 10)
}
