package gossip

import "time"

// growth is what a cell's count was seen to do, on its writer's monotonic
// clock: the slope by which it is extrapolated until more is heard.
type growth struct {
	refP  uint64        // the count at ref
	ref   time.Duration // the writer's clock then, 0 for unknown
	slope uint32        // hits a second
}

// ratedFrom is the growth in one step from which a slope is believed: a hit or
// two between messages say nothing of what comes next.
const ratedFrom = 4

// observe takes in that the count was p at the writer's instant at. start is
// the earliest instant the growth can have begun at: the start of the label
// or the message before. Slopes are taken over a whole interval at least.
func (g *growth) observe(p uint64, start, at, interval time.Duration) {
	if g.ref == 0 {
		g.refP, g.ref = 0, max(start, 1)
		g.slope = slope(p, max(at-g.ref, interval))
		if at-g.ref < interval {
			return
		}
	} else if at-g.ref < interval {
		return
	} else {
		g.slope = slope(p-min(p, g.refP), at-g.ref)
	}
	g.refP, g.ref = p, at
}

// slope is gain over a time in hits a second, 0 when it is too little to say.
func slope(gain uint64, over time.Duration) uint32 {
	if gain < ratedFrom || over <= 0 {
		return 0
	}
	ms := uint64(max(1, over.Milliseconds()))
	return uint32(min(min(gain, 1<<40)*1000/ms, 1<<32-1))
}

// extrapolated is what a slope makes of a time, in hits.
func extrapolated(slope uint32, over time.Duration) uint64 {
	return uint64(slope) * uint64(max(0, over.Milliseconds())) / 1000
}

// setRate changes by how much a cell is extrapolated.
func (s *state) setRate(i int32, rate uint32) {
	c := &s.cells[i]
	switch e := &s.keys[c.key]; {
	case c.Rate == 0 && rate > 0:
		e.rated++
	case c.Rate > 0 && rate == 0:
		e.rated--
	}
	c.Rate = rate
}

// unrateSums ends the extrapolation of all regions' sums, until their growth is
// heard of again.
func (s *state) unrateSums() {
	for i := range s.cells {
		if c := &s.cells[i]; c.used && c.Kind == RegionSum && c.Rate > 0 {
			s.setRate(int32(i), 0)
		}
	}
}
