package gossip

import (
	"fmt"
	"time"
)

// Config is how an Engine replicates. A field left 0 takes its default, but
// for Quiet and Urgent, which 0 turns off.
type Config struct {
	// Interval is the time between two messages to a daemon of the region, 10
	// ms to 10 s, default DefaultInterval. A view of a peer is up to one
	// interval and one delay old.
	Interval time.Duration
	// WANInterval is the same across regions, default DefaultWANInterval.
	WANInterval time.Duration
	// MinGap is the shortest time between two messages to one peer when what
	// is unsent matters at once, 1 ms to Interval, default DefaultMinGap.
	MinGap time.Duration
	// Quiet is how long increments that do not matter yet may wait before
	// they are sent, 0 for no longer than the interval. With it, messages
	// that are not urgent go each Quiet, or each second if that is less. It
	// saves bytes, and makes views of keys that are far from their limits
	// older; near a limit, increments are sent at once.
	Quiet time.Duration
	// MaxCells bounds the cells held, default DefaultMaxCells. Cells beyond
	// it are refused: own ones make the answer degraded.
	MaxCells int
	// FrameCells and FrameBytes bound a message, defaults DefaultFrameCells
	// and DefaultFrameBytes. What does not fit follows in the next.
	FrameCells, FrameBytes int
	// ReadyWithin is the longest time a new replica waits to hear each peer
	// of its region once, default DefaultReadyWithin.
	ReadyWithin time.Duration
	// Grace is for how long after its last use a cell is kept: the greatest
	// age of a view to allow for plus twice the clocks' max_offset, default
	// DefaultGrace.
	Grace time.Duration
	// DigestEvery is the time between two comparisons of long-lived cells,
	// default DefaultDigestEvery.
	DigestEvery time.Duration
	// HashSeed is a secret of this process, so that no peer can tell cells
	// that are slow to find.
	HashSeed uint64
}

// The defaults of Config.
const (
	DefaultInterval    = 100 * time.Millisecond
	DefaultWANInterval = 250 * time.Millisecond
	DefaultMinGap      = 10 * time.Millisecond
	DefaultMaxCells    = 16_000_000
	DefaultFrameCells  = 4_096
	DefaultFrameBytes  = 128 << 10
	DefaultReadyWithin = 2 * time.Second
	DefaultGrace       = 5 * time.Second
	DefaultDigestEvery = 30 * time.Second
)

// MaxPeers bounds the peers of an engine.
const MaxPeers = 4_096

// WithDefaults fills in what was left 0.
func (c Config) WithDefaults() Config {
	fill(&c.Interval, DefaultInterval)
	fill(&c.WANInterval, DefaultWANInterval)
	fill(&c.MinGap, min(DefaultMinGap, c.Interval))
	fill(&c.MaxCells, DefaultMaxCells)
	fill(&c.FrameCells, DefaultFrameCells)
	fill(&c.FrameBytes, DefaultFrameBytes)
	fill(&c.ReadyWithin, DefaultReadyWithin)
	fill(&c.Grace, DefaultGrace)
	fill(&c.DigestEvery, DefaultDigestEvery)
	return c
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate returns an error for the first field out of its range. A field of
// 0 stands for its default.
func (c Config) Validate() error {
	c = c.WithDefaults()
	for _, d := range []struct {
		name      string
		value     time.Duration
		low, high time.Duration
	}{
		{"interval", c.Interval, 10 * time.Millisecond, 10 * time.Second},
		{"wan interval", c.WANInterval, 10 * time.Millisecond, time.Minute},
		{"min gap", c.MinGap, time.Millisecond, c.Interval},
		{"quiet", c.Quiet, 0, time.Minute},
		{"ready within", c.ReadyWithin, 0, time.Minute},
		{"grace", c.Grace, 100 * time.Millisecond, 10 * time.Minute},
		{"digest every", c.DigestEvery, time.Second, time.Hour},
	} {
		if d.value < d.low || d.value > d.high {
			return fmt.Errorf("gossip: %s %v: want %v to %v", d.name, d.value, d.low, d.high)
		}
	}
	for _, n := range []struct {
		name             string
		value, low, high int
	}{
		{"max cells", c.MaxCells, 1, 1 << 30},
		{"cells of a frame", c.FrameCells, 1, 1 << 16},
		{"bytes of a frame", c.FrameBytes, 1 << 10, 1 << 20},
	} {
		if n.value < n.low || n.value > n.high {
			return fmt.Errorf("gossip: %d %s: want %d to %d", n.value, n.name, n.low, n.high)
		}
	}
	return nil
}
