package gossip

import (
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// growth is the observed growth of a cell's count, by its writer's monotonic
// clock. It gives the slope that extrapolates the count until it is received
// again. Of an own cell it holds only the count of the latest message.
type growth struct {
	refP uint64        // the count at ref, or in the latest message
	ref  time.Duration // the writer's clock then, 0 for unknown
}

// minGain is the least growth in one step that gives a slope: one or two hits
// between messages predict nothing. Of the sum of a region that has as many as
// severalGains of them in its window, half of that does.
const (
	minGain      = 4
	severalGains = 4
)

// leastGain returns the least growth in one step that gives a slope to a count.
func (l *link) leastGain(count uint64) uint64 {
	if l.local || count < severalGains*minGain {
		return minGain
	}
	return minGain / 2
}

// observe records the count p at the writer's time at, and returns the slope in
// hits per second; slope is the one so far. start is the earliest time the
// growth can have begun: the start of the window or the message before. A slope
// covers at least one interval, and least hits.
func (g *growth) observe(slope uint32, p uint64, start, at, interval time.Duration, least uint64) uint32 {
	if g.ref == 0 {
		g.refP, g.ref = 0, max(start, 1)
		slope = slopeOf(p, max(at-g.ref, interval), least)
		if at-g.ref < interval {
			return slope
		}
	} else if at-g.ref < interval {
		return slope
	} else {
		slope = slopeOf(p-min(p, g.refP), at-g.ref, least)
	}
	g.refP, g.ref = p, at
	return slope
}

// slopeOf returns a gain over a time in hits per second, 0 below the least one.
func slopeOf(gain uint64, over time.Duration, least uint64) uint32 {
	if gain < least || over <= 0 {
		return 0
	}
	ms := uint64(max(1, over.Milliseconds()))
	return uint32(min(min(gain, 1<<40)*1000/ms, 1<<32-1))
}

// extrapolated returns the hits of a slope over a time, rounded up.
func extrapolated(slope uint32, over time.Duration) uint64 {
	return (uint64(slope)*uint64(max(0, over.Milliseconds())) + 999) / 1000
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
	at := sentAt(m.Nonce)
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
	wall := l.wall + (int64(m.Nonce)-int64(l.wallNonce))/int64(noncesPerMilli)
	start := at - time.Duration(max(0, wall-c.Window))*time.Millisecond
	if l.receivedAt >= 0 {
		start = max(start, l.sentAt)
	}
	l.rate(s, f, c.observe(c.Rate, c.Value.P, start, at, l.interval(), l.leastGain(c.Value.P)))
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
		rate := uint32(0) // it did not grow for an interval, with jitter
		if now-c.received < l.interval()*5/8 {
			rate = c.observe(c.Rate, c.Value.P, c.ref, l.sentAt, l.interval(), l.leastGain(c.Value.P))
		}
		s.setRate(c, rate)
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

// surge is the growth of a key from the first hit of a window on, as known to
// its aggregator in a region that counts in two hops.
type surge struct {
	surgeOf int64         // the latest window
	began   time.Duration // its first hit
	slope   uint32        // hits per second of the own region, 0 for unknown
	remote  uint32        // those expected of other regions
	// full is until when hits of other regions that are on their way are
	// expected to use up the limit, 0 if they were never.
	full  time.Duration
	early bool // the region was informed although less than half was used
}

const (
	// SurgeFor is how long counts of other regions are expected to grow as that
	// of the own one. Later there are slopes.
	SurgeFor = 2 * time.Second
	// SurgeLags is the least number of lags in a window for that. If other
	// regions have no hits, what a region could admit in a part of the window,
	// one by this number, is denied without need.
	SurgeLags = 200
	// noticeTime is the time in which a notice of the aggregator, and the hits
	// that waited at the informed daemons, arrive.
	noticeTime = time.Second / 8
)

// foresee informs the region of a key that is used up so fast that counts of
// other regions do not arrive in time: these are expected to grow as the own
// region's count did within a lag. The daemons are informed when half of the
// limit will be used up soon, and once in a window when what is left is
// expected to be on its way. Only the aggregator calls it, after each hit.
func foresee(e *Engine, i int32, room Room) {
	c, now := e.state.cells.at(i), e.dispatched.latest
	k, meta := e.state.keys.at(c.key), e.state.meta(c)
	if c.Window < k.surgeOf || meta.Carry != 0 || meta.Regional {
		return
	}
	if c.Window > k.surgeOf {
		k.surge = surge{surgeOf: c.Window, began: now}
	}
	if k.slope, k.remote = 0, 0; now-k.began > SurgeFor || room.Left == 0 {
		return
	}
	sum, _ := e.state.sum(c)
	own := crdt.PN(sum).Net()
	// At most, each region had as many in the first lag, and grows as fast.
	used, most := room.Limit-room.Left, sat.MulDiv(own, 9*uint64(len(e.roles.regions)), 4)
	if own < minGain || sat.Add(used, most) < room.Limit/2 {
		return
	}
	since, lag, ahead, remote := now-k.began, time.Duration(0), uint64(0), uint64(0)
	for r := range e.roles.regions[1:] {
		l := linkOf(e, e.roles.winner(1+r, k))
		if l == nil || l.silent {
			continue
		}
		of := max(0, l.rtt)*5/8 + e.cfg.MinGap
		n := onTheirWay(own, ofOther(&e.state, c, l.incarnation), since, of)
		lag, ahead, remote = max(lag, of), sat.Add(ahead, n), sat.Add(remote, uint64(slopeOf(n, max(of, e.cfg.Interval), minGain)))
	}
	if meta.WindowLength < SurgeLags*lag.Milliseconds() {
		return
	}
	k.slope, k.remote = slopeOf(own, max(since, e.cfg.Interval), minGain), uint32(min(remote, math.MaxUint32))
	soon := sat.Add(ahead, extrapolated(k.slope, noticeTime)+extrapolated(k.remote, noticeTime))
	switch {
	case k.full != 0:
		return
	case ahead >= room.Left:
		k.full = now + lag
	case k.early || room.near() || sat.Add(used, soon) < room.Limit/2:
		return
	}
	k.early = true
	informAll(e, c.key)
}

// onTheirWay returns how many hits of another region are expected to be on
// their way, of which known ones arrived: those of the own region within a lag,
// or fewer if the other one had fewer before. since is the time since the first
// hit.
func onTheirWay(own, known uint64, since, lag time.Duration) uint64 {
	if since <= lag {
		return own
	}
	n := sat.MulDiv(own, uint64(lag), uint64(since))
	if was := own - min(n, own); known < was {
		n = sat.MulDiv(n, known, was)
	}
	return n
}

// ofOther returns the known count of another region in the window of a cell.
func ofOther(s *state, of *cell, region crdt.Incarnation) uint64 {
	for c := s.first(of); c != nil; c = s.next(c) {
		if c.Kind == RegionSum && c.Incarnation == region {
			return c.Value.Net()
		}
	}
	return 0
}

// growsBy returns the hits per second of all daemons but one, which counted a
// part of the hits of the own region.
func (s *surge) growsBy(own, part uint64) uint64 {
	return sat.MulDiv(uint64(s.slope), own-min(part, own), max(1, own)) + uint64(s.remote)
}

// usesUp is the slope of a notice that what is left will be used up by hits
// that are on their way.
const usesUp = math.MaxUint32

// foreseenFor returns how long such a notice counts: a lag, or longer.
func foreseenFor(s *state, c *cell) time.Duration {
	return time.Duration(s.meta(c).WindowLength/SurgeLags) * time.Millisecond
}

// expectsFull reports whether what is left in a window is expected to be on its
// way from other regions.
func (k *keyEntry) expectsFull(now time.Duration, window int64) bool {
	return now < k.full && window == k.surgeOf
}
