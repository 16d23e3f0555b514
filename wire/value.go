package wire

import (
	"math"
	"time"

	"github.com/georld/rld/gossip"
)

// Encoder and decoder check values by the same rules: each encoded frame can be
// decoded.

// maxMillis is the longest duration in whole milliseconds.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

// The units of windows, in milliseconds.
const (
	second = int64(time.Second / time.Millisecond)
	minute = int64(time.Minute / time.Millisecond)
)

// unitOf returns a window length in the longest unit that it is a multiple of:
// 0 for ms, 1 for s, 2 for min.
func unitOf(ms int64) (unit byte, length int64) {
	switch {
	case ms%minute == 0:
		return 2, ms / minute
	case ms%second == 0:
		return 1, ms / second
	}
	return 0, ms
}

// multipleOf returns milliseconds as a multiple of a window length, or as they
// are and true if they are none.
func multipleOf(ms, length int64) (int64, bool) {
	if ms%length == 0 {
		return ms / length, false
	}
	return ms, true
}

// millis rounds a duration of at least 0 up to milliseconds, at most maxMillis.
func millis(d time.Duration) uint64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 && ms < maxMillis {
		ms++
	}
	return uint64(ms)
}

// cellFault returns the fault of a cell's numbers, "" for none.
func cellFault(c *gossip.Cell) string {
	switch {
	case c.Known && (c.Number == 0 || uint64(c.PlaceInBlock()) >= gossip.BlockWindows):
		return "no window of the block of a known meta"
	case !c.Known && c.WindowLength < 1:
		return "width below 1 ms"
	case c.Carry < 0:
		return "carry below 0 ms"
	case c.Kind == gossip.Daemon && c.Value.N > c.Value.P:
		return "a daemon refunded more than it admitted"
	case c.Kind == gossip.Transferred && c.Value.N > c.Value.P:
		return "a daemon gave more than it moved"
	case c.Kind != gossip.Others && c.Level != 0, c.Level == 0 && c.Seen != 0:
		return "level of a bucket that it does not describe"
	case !c.Kind.Counts() && c.Rate != 0, c.Kind == gossip.Given && c.Value.N != 0:
		return "rights with more than what was given"
	}
	return ""
}

func knownKind(k gossip.Kind) bool { return k <= gossip.MaxKind }

func knownReason(r gossip.Reason) bool { return r >= gossip.TooFarAhead && r <= gossip.MaxReason }

// zigzag maps numbers near 0, of either sign, to small ones.
func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
