package node

import (
	"time"

	"github.com/georld/rld/internal/sat"
)

// pace counts hits by ticks of the time: of one length for all that is done with it.
type pace struct {
	tick        int64
	now, before uint64
}

// paceTick is the length of the ticks that say how fast hits come just now.
const paceTick = 100 * time.Millisecond

func (p *pace) roll(mono, length time.Duration) {
	switch tick := int64(mono / length); tick - p.tick {
	case 0:
	case 1:
		p.tick, p.before, p.now = tick, p.now, 0
	default:
		p.tick, p.before, p.now = tick, 0, 0
	}
}

func (p *pace) add(mono, length time.Duration, n uint64) {
	p.roll(mono, length)
	p.now = sat.Add(p.now, n)
}

// late returns how many hits came in the tick that runs or the one before it,
// whichever had more.
func (p *pace) late(mono, length time.Duration) uint64 {
	p.roll(mono, length)
	return max(p.now, p.before)
}

// within returns how many hits come in a time at the pace of the last tenths of a
// second, rounded down.
func (p *pace) within(mono, d time.Duration) uint64 {
	return min(p.late(mono, paceTick), 1<<32) * uint64(max(d, 0)/time.Microsecond) / uint64(paceTick/time.Microsecond)
}
