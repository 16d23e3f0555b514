package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// Give transfers n rights to a key in a window to another daemon of any region:
// it increases the total given to that daemon and expedites it. The caller has
// charged the rights to its account. It returns false, and transfers nothing,
// for an unknown peer, for a regional key and a peer of another region, and
// without room for the cells.
func (e *Engine) Give(now time.Duration, k crdt.Key, window int64, meta CellMeta, to crdt.Incarnation, n uint64) bool {
	l := linkOf(e, to)
	if l == nil || n == 0 || meta.Regional && !l.local {
		return false
	}
	i := e.state.ensure(CellID{Key: k, Window: window, Kind: Given, Incarnation: to}, meta)
	totals := e.state.ensure(CellID{Key: k, Window: window, Kind: Transferred, Incarnation: e.self.ID}, meta)
	if i == none || totals == none {
		return false
	}
	called(e, now)
	e.state.increase(i, now, n, 0)
	e.expedited = l.expedite(i) || e.expedited
	e.state.increase(totals, now, n, n)
	return true
}

// increase adds to the value of cell i.
func (s *state) increase(i int32, now time.Duration, p, n uint64) {
	c := s.cells.at(i)
	v := c.Value
	s.set(c, crdt.PN{P: crdt.AddSat(v.P, p), N: crdt.AddSat(v.N, n)})
	s.touch(i, now)
}

// mergeRights merges a cell about rights into another one.
func (e *Engine) mergeRights(now time.Duration, l *link, f located, in *Cell) {
	c := f.cell
	was := c.Value
	e.state.describe(c, &in.CellMeta)
	is := c.Kind.join(c.Value, in.Value)
	if is == was {
		return
	}
	e.state.set(c, is)
	c.source, c.received = l.peer.ID, now
	if c.Kind != Received {
		return
	}
	hits := is.P - was.P
	e.changes = append(e.changes, Change{Key: c.Key, Window: c.Window, Span: *e.state.meta(c), Transfer: hits, From: l.peer.ID})
	// The totals are a hint for the region: they may be missing without room.
	totals := CellID{Key: c.Key, Window: c.Window, Kind: Transferred, Incarnation: e.self.ID}
	if i := e.state.ensure(totals, *e.state.meta(c)); i != none {
		e.state.increase(i, now, hits, 0)
	}
}

// Rights are transferred rights to a key in a window.
type Rights struct{ Given, Received uint64 }

// Rights returns the rights to a key in a window that this daemon gave and
// received.
func (e *Engine) Rights(k crdt.Key, window int64) Rights {
	var sum Rights
	e.state.of(k, func(_ int32, c *cell) {
		switch {
		case c.Window != window:
		case c.Kind == Given:
			sum.Given = crdt.AddSat(sum.Given, c.Value.P)
		case c.Kind == Received:
			sum.Received = crdt.AddSat(sum.Received, c.Value.P)
		}
	})
	return sum
}

// RegionRights returns the rights to a key in a window that the daemons of this
// region gave and received, to and from each other too, as far as it is known.
func RegionRights(e *Engine, k crdt.Key, window int64) Rights {
	var sum Rights
	e.state.of(k, func(_ int32, c *cell) {
		if c.Window == window && c.Kind == Transferred {
			sum.Given = crdt.AddSat(sum.Given, c.Value.N)
			sum.Received = crdt.AddSat(sum.Received, c.Value.P-min(c.Value.P, c.Value.N))
		}
	})
	return sum
}

// ClaimedTransfer is the claim of a peer to have transferred rights to a key in
// a window to this daemon, and the transfers that it can be checked against.
type ClaimedTransfer struct {
	// From is the donor.
	From   Peer
	Key    crdt.Key
	Window int64
	Rule   uint64 // CellMeta.Rule
	// Received is what this daemon would have received of all daemons, and
	// OfRegion of those of the donor's region, with these.
	Received, OfRegion uint64
	// Given is what this daemon gave to others. RegionGave is what the daemons
	// of its region gave, to each other too.
	Given, RegionGave uint64
}

// claim returns the claim in a cell of a peer, and how many of the rights are
// known.
func claim(e *Engine, l *link, in *Cell) (g ClaimedTransfer, known uint64) {
	g = ClaimedTransfer{From: l.peer, Key: in.Key, Window: in.Window, Rule: in.Rule, Received: in.Value.P, OfRegion: in.Value.P}
	e.state.of(in.Key, func(_ int32, c *cell) {
		switch {
		case c.Window != in.Window:
		case c.Kind == Given:
			g.Given = sat.Add(g.Given, c.Value.P)
		case c.Kind == Transferred:
			g.RegionGave = sat.Add(g.RegionGave, c.Value.N)
		case c.Kind == Received && c.Incarnation == l.peer.ID:
			known = c.Value.P
		case c.Kind == Received:
			g.Received = sat.Add(g.Received, c.Value.P)
			if d := linkOf(e, c.Incarnation); d != nil && d.region == l.region {
				g.OfRegion = sat.Add(g.OfRegion, c.Value.P)
			}
		}
	})
	return g, known
}

// implausible reports whether a cell is a transfer that the donor cannot have
// made.
func implausible(e *Engine, l *link, in *Cell) bool {
	if in.Kind != Given || e.cfg.Plausible == nil {
		return false
	}
	g, known := claim(e, l, in)
	return in.Value.P > known && !e.cfg.Plausible(&g)
}

// RegionalPeer is the known state of another daemon for a key and window.
type RegionalPeer struct {
	Peer
	Used   uint64 // admitted hits without refunds
	Rate   uint64 // growth of Used in hits per second
	Rights        // as sent by the peer, or as known from own transfers
	Silent bool   // as in Link
}

// RegionalPeers appends the other daemons of the region to dst with their known
// state for a key and window, by their IDs.
func RegionalPeers(e *Engine, dst []RegionalPeer, k crdt.Key, window int64) []RegionalPeer {
	from := len(dst)
	for _, l := range e.links {
		if l.local {
			dst = append(dst, RegionalPeer{Peer: l.peer, Silent: l.silent || l.receivedAt < 0})
		}
	}
	all := dst[from:]
	e.state.of(k, func(_ int32, c *cell) {
		if c.Window != window || c.Kind == RegionSum {
			return
		}
		for j := range all {
			if p := &all[j]; p.ID == c.Incarnation {
				p.learn(c)
			}
		}
	})
	return dst
}

// learn adds a cell about the peer. Its own totals are older than the transfers
// between it and this daemon.
func (p *RegionalPeer) learn(c *cell) {
	switch c.Kind {
	case Daemon:
		p.Used, p.Rate = c.Value.Net(), uint64(c.Rate)
	case Transferred:
		p.Rights.Given = max(p.Rights.Given, c.Value.N)
		p.Rights.Received = max(p.Rights.Received, c.Value.P-min(c.Value.P, c.Value.N))
	case Given:
		p.Rights.Received = max(p.Rights.Received, c.Value.P)
	case Received:
		p.Rights.Given = max(p.Rights.Given, c.Value.P)
	}
}

// RemoteRegion is the known state of another region for a key and window.
type RemoteRegion struct {
	Region string
	Used   uint64 // admitted hits without refunds
	Rate   uint64 // growth of Used in hits per second
	// Aggregator is the region's aggregator of the key, 0 for none.
	Aggregator crdt.Incarnation
	// RTT is the round trip to it, -1 for unknown. Silent is as for a
	// RegionalPeer.
	RTT    time.Duration
	Silent bool
}

// RemoteRegions appends the other regions to dst with their known state for a
// key and window, in no particular but in a stable order.
func RemoteRegions(e *Engine, dst []RemoteRegion, k crdt.Key, window int64) []RemoteRegion {
	for i := range e.roles.regions {
		m := &e.roles.regions[i]
		if m.incarnation == e.region {
			continue
		}
		r := RemoteRegion{Region: m.region, Aggregator: m.aggregator(k), RTT: -1, Silent: true}
		if l := linkOf(e, r.Aggregator); l != nil {
			r.RTT, r.Silent = l.rtt, l.silent || l.receivedAt < 0 && !l.unused
		}
		if j := e.state.find(CellID{Key: k, Window: window, Kind: RegionSum, Incarnation: m.incarnation}); j != none {
			r.Used, r.Rate = e.state.cells.at(j).Value.Net(), uint64(e.state.cells.at(j).Rate)
		}
		dst = append(dst, r)
	}
	return dst
}

// Local reports whether an incarnation is a regional peer.
func (e *Engine) Local(id crdt.Incarnation) bool {
	l := linkOf(e, id)
	return l != nil && l.local
}
