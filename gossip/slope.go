package gossip

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

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

// measure updates the slope of a cell from a message of its writer. Only the
// peer that a cell is received through (via) gives it a slope, and its complete
// messages end the slope. Clocks of peers differ, so another via starts anew.
func (l *link) measure(e *Engine, m *Message, f located, was crdt.PN) {
	s, c := &e.state, f.cell
	firstHand := c.Kind == Daemon && c.Incarnation == l.peer.ID || c.Kind == RegionSum && !l.local
	if !firstHand {
		if c.via != l.peer.ID && linkOf(e, c.via) == nil {
			c.via = l.peer.ID
			s.setRate(c, 0)
		}
		return
	}
	at := time.Duration(m.Nonce) * time.Microsecond
	if c.via != l.peer.ID && was.P > 0 {
		c.via, c.growth = l.peer.ID, growth{refP: c.Value.P, ref: max(at, 1)}
		s.setRate(c, 0)
		return
	}
	c.via = l.peer.ID
	if l.wallNonce == 0 { // the start of the window is not known by its clock
		c.growth = growth{refP: c.Value.P, ref: max(at, 1)}
		return
	}
	wall := l.wall + (int64(m.Nonce)-int64(l.wallNonce))/1000
	start := at - time.Duration(max(0, wall-c.Window))*time.Millisecond
	if l.receivedAt >= 0 {
		start = max(start, l.sentAt)
	}
	l.rate(s, f, c.observe(c.Rate, c.Value.P, start, at, l.interval()))
}

// rate makes a slope the rate of a cell and remembers the cell.
func (l *link) rate(s *state, f located, slope uint32) {
	c := f.cell
	if c.Rate == 0 && slope > 0 {
		l.rated = append(l.rated, f.at)
		if len(l.rated) > s.cells.used { // some are listed twice
			slices.Sort(l.rated)
			l.rated = slices.Compact(l.rated)
		}
	}
	s.setRate(c, slope)
}

// settleRates lowers the slopes of cells that a complete message did not
// contain: they did not grow. Cells whose forwarded slope ends are sent again.
func (l *link) settleRates(s *state, now time.Duration) {
	kept := l.rated[:0]
	for _, i := range l.rated {
		c := s.cells.at(i)
		if !c.used || c.via != l.peer.ID || c.Rate == 0 {
			continue
		}
		s.setRate(c, c.observe(c.Rate, c.Value.P, c.ref, l.sentAt, l.interval()))
		if c.Rate == 0 && c.Kind == RegionSum {
			s.touch(i, now)
		}
		if c.Rate > 0 {
			kept = append(kept, i)
		}
	}
	l.rated = kept
}

// clearRates ends the extrapolation of the peer's cells. Cells with a forwarded
// slope are sent again.
func (l *link) clearRates(s *state, now time.Duration) {
	for _, i := range l.rated {
		if c := s.cells.at(i); c.used && c.via == l.peer.ID && c.Rate > 0 {
			s.setRate(c, 0)
			if c.Kind == RegionSum {
				s.touch(i, now)
			}
		}
	}
}
