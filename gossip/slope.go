package gossip

import "time"

// growth is the observed growth of a cell's count, by its writer's monotonic
// clock. It gives the slope that extrapolates the count until it is received
// again. Of an own cell it holds only the count of the latest message.
type growth struct {
	refP uint64        // the count at ref, or in the latest message
	ref  time.Duration // the writer's clock then, 0 for unknown
}

// minGain is the least growth in one step that gives a slope: one or two hits
// between messages predict nothing.
const minGain = 4

// observe records the count p at the writer's time at, and returns the slope in
// hits per second; slope is the one so far. start is the earliest time the
// growth can have begun: the start of the window or the message before. A slope
// covers at least one interval.
func (g *growth) observe(slope uint32, p uint64, start, at, interval time.Duration) uint32 {
	if g.ref == 0 {
		g.refP, g.ref = 0, max(start, 1)
		slope = slopeOf(p, max(at-g.ref, interval))
		if at-g.ref < interval {
			return slope
		}
	} else if at-g.ref < interval {
		return slope
	} else {
		slope = slopeOf(p-min(p, g.refP), at-g.ref)
	}
	g.refP, g.ref = p, at
	return slope
}

// slopeOf returns a gain over a time in hits per second, 0 below minGain.
func slopeOf(gain uint64, over time.Duration) uint32 {
	if gain < minGain || over <= 0 {
		return 0
	}
	ms := uint64(max(1, over.Milliseconds()))
	return uint32(min(min(gain, 1<<40)*1000/ms, 1<<32-1))
}

// extrapolated returns the hits of a slope over a time.
func extrapolated(slope uint32, over time.Duration) uint64 {
	return uint64(slope) * uint64(max(0, over.Milliseconds())) / 1000
}

// setRate sets the rate by which a cell is extrapolated.
func (s *state) setRate(c *cell, rate uint32) {
	switch {
	case c.Rate == 0 && rate > 0:
		s.keys.at(c.key).rated++
	case c.Rate > 0 && rate == 0:
		s.keys.at(c.key).rated--
	}
	c.Rate = rate
}

// clearSumRates ends the extrapolation of all sums until a new rate arrives.
func (s *state) clearSumRates() {
	for i := range int32(s.cells.used) {
		if c := s.cells.at(i); c.used && c.Kind == RegionSum && c.Rate > 0 {
			s.setRate(c, 0)
		}
	}
}
