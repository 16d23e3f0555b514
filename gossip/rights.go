package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
)

// Give gives n rights of a key's label to another daemon, of whatever region:
// it raises what that one was given in all and sends it at once. The caller has
// found the rights to be its own, and counts them as used from now on. It
// returns false, and nothing was given, for a daemon that is no peer, a regional
// key and one of another region, or when there is no room for the cells.
func (e *Engine) Give(now time.Duration, k crdt.Key, window int64, span CellMeta, to crdt.Incarnation, n uint64) bool {
	l := e.link(to)
	if l == nil || n == 0 || span.Regional && !l.local {
		return false
	}
	given := e.ensure(CellID{Key: k, Window: window, Kind: Given, Incarnation: to}, span)
	if given == none || e.ensure(CellID{Key: k, Window: window, Kind: Transferred, Incarnation: e.self.ID}, span) == none {
		return false
	}
	v := e.state.cells[given].Value
	v.P = crdt.AddSat(v.P, n)
	e.state.set(given, v)
	e.state.touch(given, now)
	e.expedite(l, given)
	e.transfer(now, k, window, span, n, n)
	return true
}

// ensure returns the cell of a name, which is made when there is none; none
// when there is no room.
func (e *Engine) ensure(id CellID, span CellMeta) int32 {
	i := e.state.find(id)
	if i == none {
		return e.state.add(id, span)
	}
	c := &e.state.cells[i]
	c.Carry = max(c.Carry, span.Carry)
	return i
}

// transfer adds to what the region is told of the rights this daemon gave and was
// given. It is a hint: without room nobody hears of it.
func (e *Engine) transfer(now time.Duration, k crdt.Key, window int64, span CellMeta, moved, given uint64) {
	i := e.ensure(CellID{Key: k, Window: window, Kind: Transferred, Incarnation: e.self.ID}, span)
	if i == none {
		return
	}
	v := e.state.cells[i].Value
	e.state.set(i, crdt.PN{P: crdt.AddSat(v.P, moved), N: crdt.AddSat(v.N, given)})
	e.state.touch(i, now)
}

// takeRights joins a cell about rights into the one at i.
func (e *Engine) takeRights(now time.Duration, l *link, i int32, in *Cell) {
	e.merged++
	c := &e.state.cells[i]
	was := c.Value
	c.Carry = max(c.Carry, in.Carry)
	is := was.Join(in.Value)
	if is == was {
		return
	}
	e.state.set(i, is)
	c.from, c.told = l.peer.ID, now
	if c.Kind != Received {
		return
	}
	gift := is.P - was.P
	change := Change{Key: c.Key, Window: c.Window, Span: c.CellMeta, Transfer: gift, From: l.peer.ID}
	e.changes = append(e.changes, change)
	e.transfer(now, change.Key, change.Window, change.Span, gift, 0)
}

// Keep makes the cells of a key matter for carry milliseconds beyond the ends of
// their labels, as they do under the rule that counts there now. Others are told:
// who was not asked for the key yet would drop them, and need them then.
func (e *Engine) Keep(k crdt.Key, carry int64) {
	e.keep(k, carry, func(*cell) bool { return true })
}

// keep does so for some cells.
func (e *Engine) keep(k crdt.Key, carry int64, some func(*cell) bool) {
	at := e.state.keyOf(k)
	if at == none {
		return
	}
	for i := e.state.keys[at].first; i != none; i = e.state.cells[i].fwd {
		if c := &e.state.cells[i]; c.Carry < carry && some(c) {
			c.Carry = carry
			e.state.touch(i, e.swept) // no later than now: nothing was added
		}
	}
}

// Rights are the rights of a key's label that daemons gave each other.
type Rights struct{ Given, Received uint64 }

// Rights returns what this daemon gave and was given of a key's label.
func (e *Engine) Rights(k crdt.Key, window int64) Rights {
	var sum Rights
	at := e.state.keyOf(k)
	if at == none {
		return sum
	}
	for i := e.state.keys[at].first; i != none; i = e.state.cells[i].fwd {
		switch c := &e.state.cells[i]; {
		case c.Window != window:
		case c.Kind == Given:
			sum.Given = crdt.AddSat(sum.Given, c.Value.P)
		case c.Kind == Received:
			sum.Received = crdt.AddSat(sum.Received, c.Value.P)
		}
	}
	return sum
}

// RegionalPeer is what is known of another daemon's part in a key's label.
type RegionalPeer struct {
	Peer
	Used   uint64 // admitted, less what was refunded
	Rate   uint64 // hits a second by which that grew
	Rights        // as the sibling told, or as known from gifts to and from it
	Silent bool   // nothing was heard of it for three lags
}

// RegionalPeers appends to dst the other daemons of the region with what is known of
// their part in a key's label, by their IDs.
func (e *Engine) RegionalPeers(dst []RegionalPeer, k crdt.Key, window int64) []RegionalPeer {
	from := len(dst)
	for _, l := range e.links {
		if l.local {
			dst = append(dst, RegionalPeer{Peer: l.peer, Silent: l.silent || l.heardAt < 0})
		}
	}
	all := dst[from:]
	at := e.state.keyOf(k)
	if at == none {
		return dst
	}
	for i := e.state.keys[at].first; i != none; i = e.state.cells[i].fwd {
		c := &e.state.cells[i]
		if c.Window != window || c.Kind == RegionSum {
			continue
		}
		for j := range all {
			if s := &all[j]; s.ID == c.Incarnation {
				s.learn(c)
			}
		}
	}
	return dst
}

// learn takes in a cell about the sibling. What it told of its trade lags behind
// what passed between it and us.
func (s *RegionalPeer) learn(c *cell) {
	switch c.Kind {
	case Daemon:
		s.Used, s.Rate = c.Value.Net(), uint64(c.Rate)
	case Transferred:
		s.Rights.Given = max(s.Rights.Given, c.Value.N)
		s.Rights.Received = max(s.Rights.Received, c.Value.P-min(c.Value.P, c.Value.N))
	case Given:
		s.Rights.Received = max(s.Rights.Received, c.Value.P)
	case Received:
		s.Rights.Given = max(s.Rights.Given, c.Value.P)
	}
}

// RemoteRegion is what is known of another region's part in a key's label.
type RemoteRegion struct {
	Region string
	Used   uint64 // admitted, less what was refunded
	Rate   uint64 // hits a second by which that grew
	// Aggregator is who speaks for the region, 0 for nobody.
	Aggregator crdt.Incarnation
	// RTT is the round trip to it, -1 for unknown; Silent as in RegionalPeer.
	RTT    time.Duration
	Silent bool
}

// RemoteRegion appends the other regions to dst, in the order of their names.
func (e *Engine) RemoteRegions(dst []RemoteRegion, k crdt.Key, window int64) []RemoteRegion {
	for i := range e.teams {
		t := &e.teams[i]
		if t.incarnation == e.region {
			continue
		}
		a := RemoteRegion{Region: t.region, Aggregator: t.aggregator(k), RTT: -1, Silent: true}
		if l := e.link(a.Aggregator); l != nil {
			a.RTT, a.Silent = l.rtt, l.silent || l.heardAt < 0
		}
		if j := e.state.find(CellID{Key: k, Window: window, Kind: RegionSum, Incarnation: t.incarnation}); j != none {
			a.Used, a.Rate = e.state.cells[j].Value.Net(), uint64(e.state.cells[j].Rate)
		}
		dst = append(dst, a)
	}
	return dst
}

// Local reports whether a peer is of our region; a stranger is not.
func (e *Engine) Local(id crdt.Incarnation) bool {
	l := e.link(id)
	return l != nil && l.local
}

// Aggregates reports whether this daemon speaks for its region about a key.
func (e *Engine) Aggregates(k crdt.Key) bool { return e.mine(k) }

// Aggregator returns who speaks for the region about a key, 0 for nobody.
func (e *Engine) Aggregator(k crdt.Key) crdt.Incarnation { return e.teams[0].aggregator(k) }
