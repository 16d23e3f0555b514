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
// in the current tick and the nine before it. It is 56 bytes and the zero value
// is ready for use. It belongs to a key and not to a window: traffic does not
// stop where a window ends. A tick counts up to 2^32-1 hits.
type Rates struct {
	offered [ticks]uint32
	tick    int64 // The current tick: the time of the last use over TickMS.
	began   int64 // Time of the first hit after two ticks without any.
}

// Burst divides by burstMS at least, and needs burstHits: the rate of fewer
// hits is not exact.
const (
	burstMS   = 25
	burstHits = 8
)

// Offer counts n hits offered at now. Count a hit before Need.Asks, so that a
// daemon without rights notices its own need.
func (r *Rates) Offer(now int64, n uint64) {
	if r.Recent(now) == 0 {
		r.began = now
	}
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

// Burst returns the rate of Recent in hits per second, over the time since it
// began. It is 0 where that is not known yet. Rate, which divides by two whole
// ticks, notices a burst some 100 ms later.
func (r *Rates) Burst(now int64) uint64 {
	recent := r.Recent(now)
	if recent < burstHits {
		return 0
	}
	from := max(r.began, (r.tick-1)*TickMS)
	return sat.MulDiv(recent, 1000, span(min(max(now-from, burstMS), 2*TickMS)))
}

// Within returns the rate in hits per second of the last ticks that cover ms
// milliseconds: 1 to 10 ticks.
func (r *Rates) Within(now, ms int64) uint64 {
	r.roll(now)
	n := min(max((ms+TickMS-1)/TickMS, 1), ticks)
	var sum uint64
	for i := range uint64(n) {
		sum += uint64(r.offered[(uint64(r.tick)+ticks-i)%ticks])
	}
	return sat.MulDiv(sum, 1000, span(n*TickMS))
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
