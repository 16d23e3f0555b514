package lease

import (
	"time"

	"github.com/georld/rld/internal/sat"
)

// The intervals of rate meters.
const (
	// burstInterval is for how fast hits come just now.
	burstInterval = 100 * time.Millisecond
	// prefetchInterval is for rarely requested keys: one with several calls in
	// it will have another.
	prefetchInterval = 5 * time.Second
)

// rateMeter counts hits by intervals of the monotonic clock. All calls on one
// meter pass the same interval.
type rateMeter struct {
	number          int64 // of the interval that current counts
	current, former uint64
}

func (m *rateMeter) roll(mono, interval time.Duration) {
	number := int64(mono / interval)
	switch number - m.number {
	case 0:
		return
	case 1:
		m.former = m.current
	default:
		m.former = 0
	}
	m.number, m.current = number, 0
}

func (m *rateMeter) add(mono, interval time.Duration, hits uint64) {
	m.roll(mono, interval)
	m.current = sat.Add(m.current, hits)
}

// recent returns the hits of the current or the former interval, whichever has
// more.
func (m *rateMeter) recent(mono, interval time.Duration) uint64 {
	m.roll(mono, interval)
	return max(m.current, m.former)
}

// within returns how many hits come in a time at the rate of a meter of
// burstInterval, rounded down.
func (m *rateMeter) within(mono, d time.Duration) uint64 {
	return min(m.recent(mono, burstInterval), 1<<32) * uint64(max(d, 0)/time.Microsecond) / uint64(burstInterval/time.Microsecond)
}
