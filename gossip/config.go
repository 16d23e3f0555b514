package gossip

import (
	"cmp"
	"fmt"
	"time"
)

// Config is the configuration of an Engine. A field of 0 has its default,
// except for Quiet, which 0 disables.
type Config struct {
	// Interval is the time between two messages to a regional peer, 10 ms to
	// 10 s, default DefaultInterval. The staleness of a view is up to one
	// interval and one network delay.
	Interval time.Duration
	// WANInterval is the same across regions, default DefaultWANInterval.
	WANInterval time.Duration
	// MinGap is the shortest time between two messages to one peer when cells
	// are expedited, 1 ms to Interval, default DefaultMinGap.
	MinGap time.Duration
	// Quiet is how long increments far from a limit may be delayed, 0 for no
	// longer than the interval. With it, messages that are not expedited are
	// sent once per Quiet or once per second, if that is less. It saves bytes
	// and increases the staleness of keys far from their limits. Increments
	// near a limit are sent without delay, and more cells than fit into a
	// message at the interval.
	Quiet time.Duration
	// MaxCells bounds the cells in memory, default DefaultMaxCells. Cells
	// beyond it are refused; for own cells the decision is degraded.
	MaxCells int
	// FrameCells and FrameBytes bound a message, defaults DefaultFrameCells
	// and DefaultFrameBytes. The rest follows in the next message.
	FrameCells, FrameBytes int
	// ReadyWithin is the longest time a new daemon waits for all cells of each
	// regional peer, default DefaultReadyWithin.
	ReadyWithin time.Duration
	// Grace is how long a cell is kept after its end: the greatest expected
	// staleness plus twice the clocks' max_offset, default DefaultGrace.
	Grace time.Duration
	// DigestEvery is the time between two comparisons of long-lived cells, and
	// between two resyncs of a peer of which more cells are refused than can be
	// listed, default DefaultDigestEvery.
	DigestEvery time.Duration
	// HashSeed is a secret of this process, so that no peer can choose cells
	// with colliding hashes.
	HashSeed uint64
	// Plausible reports whether a peer may have made a transfer. One that it
	// may not have made is refused: its donor sends it again later. Nil for
	// any.
	Plausible func(t *ClaimedTransfer) bool
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

// WithDefaults returns c with defaults for fields of 0.
func (c Config) WithDefaults() Config {
	c.Interval = cmp.Or(c.Interval, DefaultInterval)
	c.WANInterval = cmp.Or(c.WANInterval, DefaultWANInterval)
	c.MinGap = cmp.Or(c.MinGap, min(DefaultMinGap, c.Interval))
	c.MaxCells = cmp.Or(c.MaxCells, DefaultMaxCells)
	c.FrameCells = cmp.Or(c.FrameCells, DefaultFrameCells)
	c.FrameBytes = cmp.Or(c.FrameBytes, DefaultFrameBytes)
	c.ReadyWithin = cmp.Or(c.ReadyWithin, DefaultReadyWithin)
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.DigestEvery = cmp.Or(c.DigestEvery, DefaultDigestEvery)
	return c
}

// Validate returns an error for the first field out of its range. A field of 0
// has its default.
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

// settleTime is how long the daemons of a region need to exchange all cells.
func (c *Config) settleTime() time.Duration { return max(c.ReadyWithin, 20*c.Interval) }

// delays reports whether increments of a window of a length are delayed.
func (c *Config) delays(windowMS int64) bool {
	return c.Quiet > 0 && c.Quiet.Milliseconds() <= windowMS/4
}
