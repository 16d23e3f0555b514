package transfer

import (
	"math"

	"github.com/georld/rld/internal/sat"
)

// TickMS is the length of a tick in milliseconds: the resolution of Rates, and
// the interval at which daemons of a region exchange their counts.
const TickMS = 100

// ticks is how many ticks Rates remembers, with the current one.
const ticks = 10

// Rates counts the hits offered to one daemon for one key, admitted and denied,
// in the current tick and the nine before it. It is 48 bytes and the zero value
// is ready for use. It belongs to a key and not to a window: traffic does not
// stop where a window ends. A tick counts up to 2^32-1 hits.
type Rates struct {
	offered [ticks]uint32
	tick    int64 // The current tick: the time of the last use over TickMS.
}

// Offer counts n hits offered at now. Count a hit before Need.Asks, so that a
// daemon without rights notices its own need.
func (r *Rates) Offer(now int64, n uint64) {
	r.roll(now)
	tick := &r.offered[uint64(r.tick)%ticks]
	*tick = uint32(min(sat.Add(uint64(*tick), n), math.MaxUint32))
}

// Recent returns the hits of the current tick and the one before. A daemon
// expects to need as many rights until a reply arrives.
func (r *Rates) Recent(now int64) uint64 {
	r.roll(now)
	t := uint64(r.tick)
	return uint64(r.offered[t%ticks]) + uint64(r.offered[(t+ticks-1)%ticks])
}

// Second returns the hits of the last ten ticks, with the current one. A daemon
// has no traffic when it is 0.
func (r *Rates) Second(now int64) uint64 {
	r.roll(now)
	var sum uint64
	for _, n := range r.offered {
		sum += uint64(n)
	}
	return sum
}

// roll makes the tick of now the current one. A time before the current tick
// counts as in it.
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

// Rate returns the offered rate of a daemon or region in hits per second: the
// hits of the last second, or five times those of the last two ticks at the
// start of a burst. recent and second are Rates.Recent and Rates.Second, or
// their sums.
func Rate(recent, second uint64) uint64 {
	return max(second, sat.MulDiv(recent, 1000, 2*TickMS))
}
