package gossip

import (
	"slices"

	"github.com/georld/rld/crdt"
)

// scope selects the cells that one peer receives, and their form: a peer of
// another region receives the sum of this region instead of its cells.
type scope struct {
	to           *link
	state        *state
	roles        *roles
	links        links
	self         crdt.Incarnation
	ownRegion    crdt.Incarnation
	lostOfRegion crdt.Incarnation
}

// scope returns the scope of a peer.
func (e *Engine) scope(l *link) scope {
	return scope{l, &e.state, &e.roles, e.links, e.self.ID, e.region, e.restoration.lost}
}

// includes reports whether the peer receives a cell.
func (s *scope) includes(c *cell) bool {
	switch {
	case c.Kind == Given:
		return c.Incarnation == s.to.peer.ID
	case c.Kind == Transferred:
		return s.to.local && c.Incarnation == s.self
	case c.Kind == Received, c.Incarnation == s.to.peer.ID:
		return false
	case s.to.local:
		return s.includesRegional(c)
	case c.Kind == Daemon:
		return s.includesSum(c)
	}
	// The sum of the peer's own region, in case that region lost it.
	return c.Incarnation == s.to.incarnation && (c.version <= s.to.resyncTo || s.links.find(c.source) == nil)
}

// includesRegional reports whether a regional peer receives a cell: in a resync
// every cell, later those of this daemon, their only writer. Cells without a
// live writer in the region, sums of other regions and cells of former daemons,
// go through the key's aggregator: the daemon that receives one first sends it
// to the aggregator, which sends it to all.
func (s *scope) includesRegional(c *cell) bool {
	switch {
	case c.Kind == RegionSum && c.Incarnation == s.ownRegion:
		return false
	case c.version <= s.to.resyncTo:
		return true
	case c.Kind == Daemon && (c.Incarnation == s.self || c.Incarnation == s.lostOfRegion):
		return true
	case c.Kind == Daemon && s.links.find(c.Incarnation) != nil, c.source == s.to.peer.ID:
		return false
	}
	winner := s.roles.cached(s.state.keys.at(c.key))
	return winner == s.self || winner == s.to.peer.ID
}

// includesSum reports whether this daemon sends the sum that a cell is part of
// to a peer of another region: between the aggregators only, and once for
// several changed cells of a sum.
func (s *scope) includesSum(c *cell) bool {
	k := s.state.keys.at(c.key)
	if c.Regional || s.roles.cached(k) != s.self || !s.roles.receives(s.to, c.Key) {
		return false
	}
	for i := k.chain.first; i != none; i = s.state.cells.at(i).at[keyList].next {
		if o := s.state.cells.at(i); o.Kind == Daemon && o.Window == c.Window && (o.Regional || o.version > c.version) {
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
	return c.CellID
}

// cell returns the cell that the peer receives for c.
func (s *scope) cell(c *cell) Cell {
	if c.Kind == Daemon && !s.to.local {
		v, meta := s.state.sum(c.key, c.Window)
		return Cell{CellID: s.name(c), CellMeta: meta, Value: crdt.PN(v)}
	}
	out := c.Cell
	if c.Kind == Daemon {
		out.Rate = 0 // the receiver measures it from the writer's messages
	}
	return out
}

// compare orders cells by the names that the peer receives.
func (s *scope) compare(a, b *cell) int {
	if a.Kind == b.Kind && (a.Incarnation == b.Incarnation || a.Kind == Daemon && !s.to.local) {
		return compareInIncarnation(&a.CellID, &b.CellID)
	}
	x, y := s.name(a), s.name(b)
	return x.Compare(y)
}

// put puts cells into a message, each name once and in order. room is empty
// memory for as many.
func (s *scope) put(m *Message, room []Cell, picked []int32) {
	if len(picked) == 0 {
		return
	}
	cells := &s.state.cells
	slices.SortFunc(picked, func(a, b int32) int { return s.compare(cells.at(a), cells.at(b)) })
	m.Cells = room
	for n, i := range picked {
		c := cells.at(i)
		if c.Incarnation == s.self {
			c.sent = c.Value.P
		}
		if n == 0 || s.compare(cells.at(picked[n-1]), c) != 0 {
			m.Cells = append(m.Cells, s.cell(c))
		}
	}
}
