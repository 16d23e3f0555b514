package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// scope selects the cells that one peer receives, and their form: a peer of
// another region receives the sum of this region instead of its cells.
type scope struct {
	to           *link
	state        *state
	roles        *roles
	engine       *Engine
	self         crdt.Incarnation
	ownRegion    crdt.Incarnation
	lostOfRegion crdt.Incarnation
	order        *pickOrder
	now          time.Duration
}

// scope returns the scope of a peer.
func (e *Engine) scope(l *link) scope {
	return scope{l, &e.state, &e.roles, e, e.self.ID, e.region, e.restoration.lost, &e.order, e.dispatched.latest}
}

// includes reports whether the peer receives a cell.
func (s *scope) includes(c *cell) bool {
	switch {
	case !s.to.local:
		again := c.version <= s.to.resyncTo && (c.Kind == RegionSum || c.Kind == Daemon && s.sums(c))
		return (again || !s.held(c) && s.mayLeave(c)) && s.leaves(c, s.roles.winner(s.to.region, s.state.keys.at(c.key)))
	case c.Kind == Given:
		return c.Incarnation == s.to.peer.ID
	case c.Kind == Transferred:
		return c.Incarnation == s.self
	case c.Kind == Received, c.Kind == Others, c.Incarnation == s.to.peer.ID:
		return false
	case s.roles.two:
		return s.includesKept(c)
	}
	return s.includesRegional(c)
}

// held reports whether the sum that a cell is part of is withheld from the
// peer, or from all. A peer that lacks a change from before receives it, and so
// does one that lacks the sum of an earlier window.
func (s *scope) held(c *cell) bool {
	if !c.held {
		return false
	}
	k := s.state.keys.at(c.key)
	return k.sumOf == c.Window && (s.to == nil || s.to.has(k.left))
}

// mayLeave reports whether some peer of another region receives a cell, or the
// sum that it is part of, outside a resync and if it is not withheld.
func (s *scope) mayLeave(c *cell) bool {
	switch c.Kind {
	case Given:
		return true
	case Daemon:
		return s.sums(c)
	case RegionSum: // nobody else would return the sum to its region
		return linkOf(s.engine, c.source) == nil
	}
	return false
}

// leaves reports whether the peer, of another region, is the one that receives
// a cell of those that leave: a transfer to it, the sum of this region of a key
// that it aggregates, or the sum of its own region, in case that region lost
// it. winner is the aggregator of the cell's key in the peer's region.
func (s *scope) leaves(c *cell, winner crdt.Incarnation) bool {
	switch c.Kind {
	case Given:
		return c.Incarnation == s.to.peer.ID
	case Daemon:
		return c.Incarnation != s.to.peer.ID && winner == s.to.peer.ID
	}
	return c.Incarnation == s.to.incarnation && winner == s.to.peer.ID
}

// hasWriter reports whether a peer counts under the incarnation of a cell and
// sends the cell itself. A daemon that leaves counts on no peer for that: one
// may have ended and nobody has noticed, and this daemon cannot wait.
func (s *scope) hasWriter(c *cell) bool {
	return !s.engine.leaving && linkOf(s.engine, c.Incarnation) != nil
}

// includesRegional reports whether a regional peer receives a cell: in a resync
// every cell, later those of this daemon, their only writer. Cells without a
// live writer in the region, sums of other regions and cells of former daemons,
// go through the key's aggregator: the daemon that receives one first sends it
// to the aggregator, which sends it to all. A daemon that leaves sends all to
// all.
func (s *scope) includesRegional(c *cell) bool {
	switch {
	case c.Kind == RegionSum && c.Incarnation == s.ownRegion:
		return false
	case c.version <= s.to.resyncTo:
		return true
	case c.Kind == Daemon && (c.Incarnation == s.self || c.Incarnation == s.lostOfRegion):
		return true
	case c.Kind == Daemon && s.hasWriter(c), c.source == s.to.peer.ID:
		return false
	case c.Kind == Daemon && s.engine.leaving:
		return true
	}
	winner := s.roles.cached(s.state.keys.at(c.key))
	return winner == s.self || winner == s.to.peer.ID
}

// includesKept is the same in a region that counts in two hops. The aggregator
// of a key receives its cells, from their writers. The successor receives those
// that the aggregator alone would have: its own, and those without a live
// writer. It also receives cells of keys near their limits, and all while the
// aggregator is silent. A cell that has no live writer in the region, or was
// received by mistake, goes through the aggregator; a daemon that leaves sends
// it to both.
func (s *scope) includesKept(c *cell) bool {
	key := s.state.keys.at(c.key)
	k, peer := s.roles.pair(key), s.to.peer.ID
	if c.Kind == RegionSum {
		return c.Incarnation != s.ownRegion && peer == k.aggregator && c.source != peer
	}
	switch {
	case !k.has(peer):
		return false
	case c.version <= s.to.resyncTo:
		return true
	case c.Incarnation == s.self:
		return peer == k.aggregator || s.self == k.aggregator || k.changed || key.near == c.Window || !s.roles.shares
	case c.source == peer:
		return false
	case c.Incarnation != s.lostOfRegion && s.hasWriter(c):
		return peer == k.aggregator && !k.has(s.self)
	}
	return peer == k.aggregator || s.self == k.aggregator || s.engine.leaving
}

// sums reports whether this daemon sends the sum that a cell is part of to
// other regions: only the aggregator of its key does. A message has a sum once,
// also if several of its cells changed.
func (s *scope) sums(c *cell) bool {
	k := s.state.keys.at(c.key)
	if s.state.meta(c).Regional || s.roles.cached(k) != s.self {
		return false
	}
	for o := s.state.first(c); o != nil; o = s.state.next(o) {
		if o.Kind == Daemon && s.state.meta(o).Regional {
			return false
		}
	}
	return true
}

// name returns the name of the cell that the peer receives for c.
func (s *scope) name(c *cell) CellID {
	if c.Kind == Daemon && !s.to.local {
		return CellID{Key: c.Key, Window: c.Window, Kind: RegionSum, Incarnation: s.ownRegion}
	}
	return c.id()
}

// cell returns the cell that the peer receives for c.
func (s *scope) cell(c *cell) Cell {
	if c.Kind == Daemon && !s.to.local {
		v, meta := s.state.sum(c)
		if c.version > s.to.resyncTo { // else only this region receives it
			s.state.summed(c, v)
		}
		return Cell{CellID: s.name(c), CellMeta: meta, Value: crdt.PN(v)}
	}
	rate := c.Rate
	if c.Kind == Daemon {
		rate = 0 // the receiver measures it from the writer's messages
	}
	return Cell{CellMeta: *s.state.meta(c), Rate: rate, Value: c.Value, CellID: c.id()}
}

// trail makes the link send another message after this one, even without
// changes: it ends a slope if the cell grew no more for about an interval.
func (l *link) trail(now time.Duration) { l.trailAt = l.next(now + l.interval()*3/4) }

// trail makes the link do so if the cell grew by so much that the peer
// extrapolates it. Within a region that counts in two hops that matters near a
// limit alone.
func (s *scope) trail(c *cell) {
	grown, least := uint64(0), uint64(minGain)
	switch {
	case c.Kind != Daemon:
	case !s.to.local:
		v, _ := s.state.sum(c)
		grown = s.grown(c.Window, s.state.keys.at(c.key), sat.Add(v.P, v.N))
		least = s.to.leastGain(v.P)
	case s.roles.two && s.state.keys.at(c.key).near != c.Window:
	case c.Incarnation == s.self && !c.small:
		grown = c.Value.P - c.refP
	}
	if grown >= least {
		s.to.trail(s.now)
	}
}

// grown returns by how much the sum of the region grew in an interval, as other
// regions receive it, also while it is sent to one after the other.
func (s *scope) grown(window int64, k *keyEntry, sum uint64) uint64 {
	if k.sumAt != s.state.version {
		if k.sumAt = s.state.version; s.now-k.sumFrom >= s.to.interval() {
			k.before, k.sumFrom = k.sent(window), s.now
		}
		k.sumGrew = sum - min(sum, k.before)
	}
	return k.sumGrew
}

// put puts cells into a message, each name once and in order. room is empty
// memory for as many.
func (s *scope) put(m *Message, room []Cell, picked []pick) {
	if len(picked) == 0 {
		return
	}
	picked = s.order.sort(s.state, picked)
	m.Cells = room
	for n, p := range picked {
		c := s.state.cells.at(p.cell)
		if p.kind == Others {
			if n == 0 || s.state.compare(&picked[n-1], &picked[n]) != 0 {
				m.Cells = append(m.Cells, s.others(c))
				s.refer(&m.Cells[len(m.Cells)-1])
			}
			continue
		}
		s.trail(c)
		if c.Incarnation == s.self && s.refers(c) {
			c.refP = c.Value.P
		}
		if n == 0 || s.to.local || s.state.compare(&picked[n-1], &picked[n]) != 0 {
			m.Cells = append(m.Cells, s.cell(c))
			s.refer(&m.Cells[len(m.Cells)-1])
		}
	}
}

// refers reports whether an own cell counts as sent once the peer was sent it.
// Of regional peers that is the aggregator, and the successor if this daemon is
// the aggregator.
func (s *scope) refers(c *cell) bool {
	aggregator := s.roles.cached(s.state.keys.at(c.key))
	return !s.roles.two || !s.to.local || s.to.peer.ID == aggregator || s.self == aggregator
}

// refer names a cell as in messages: with the number of its description.
func (s *scope) refer(c *Cell) {
	c.Incarnation = s.written(c.Kind, c.Incarnation)
	c.Number = s.state.numbers.of(&c.CellMeta, c.Window)
	c.Known = c.Number != 0 && s.to.sentMetas.known(c.Number, s.to.acked)
}
