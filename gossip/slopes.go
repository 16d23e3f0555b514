package gossip

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

// measure updates the slope of a cell from a message of its writer. Only the
// peer that a cell is received through (via) gives it a slope, and its complete
// messages end the slope. Clocks of peers differ, so another via starts anew.
func (l *link) measure(s *state, ls links, m *Message, f located, was crdt.PN) {
	c := f.cell
	firstHand := c.Kind == Daemon && c.Incarnation == l.peer.ID || c.Kind == RegionSum && !l.local
	if !firstHand {
		if c.via != l.peer.ID && ls.find(c.via) == nil {
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
