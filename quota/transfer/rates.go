package transfer

import (
	"math"

	"github.com/georld/rld/internal/sat"
)

// TickMS is the length of a tick, the grain in which offered hits are
// remembered, and the pace at which daemons of a region tell each other what
// they have counted.
const TickMS = 100

// ticks is how many ticks Rates remembers, the running one included.
const ticks = 10

// Rates remembers how many hits were offered to one daemon for one key, admitted
// and denied, in the running tick and the nine before it. It is 48 bytes and the
// zero value is ready. It belongs to a key, not to a label: traffic does not
// stop where a window ends. A tick remembers up to 2^32-1 hits.
type Rates struct {
	offered [ticks]uint32
	tick    int64 // The running tick: the instant of the last use over TickMS.
}

// Offer counts n hits that were offered at now. Count a hit before asking
// whether it passes, so that a daemon at 0 rights notices its own hunger.
func (r *Rates) Offer(now int64, n uint64) {
	r.roll(now)
	incarnation := &r.offered[uint64(r.tick)%ticks]
	*incarnation = uint32(min(sat.Add(uint64(*incarnation), n), math.MaxUint32))
}

// Recent returns the hits of the running tick and the one before: h. It is what
// a daemon must expect to need until an answer comes.
func (r *Rates) Recent(now int64) uint64 {
	r.roll(now)
	t := uint64(r.tick)
	return uint64(r.offered[t%ticks]) + uint64(r.offered[(t+ticks-1)%ticks])
}

// Second returns the hits of the last ten ticks, the running one included: q. A
// daemon is silent when it is 0.
func (r *Rates) Second(now int64) uint64 {
	r.roll(now)
	var sum uint64
	for _, n := range r.offered {
		sum += uint64(n)
	}
	return sum
}

// roll makes the tick of now the running one. An instant before the running
// tick counts as in it.
func (r *Rates) roll(now int64) {
	tick := max(now, 0) / TickMS
	if tick-r.tick >= ticks {
		r.offered = [ticks]uint32{}
		r.tick = tick
		return
	}
	for r.tick < tick {
		r.tick++
		r.offered[uint64(r.tick)%ticks] = 0
	}
}

// Rate is the offered rate in hits a second from which regions reckon: what the
// last second had, or five times the last two ticks where a burst has just
// begun. h and q are Recent and Second, of a daemon or summed over a region.
func Rate(h, q uint64) uint64 {
	return max(q, sat.MulDiv(h, 1000, 2*TickMS))
}
