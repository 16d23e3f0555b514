package gossip

import (
	"iter"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

// Link is the state of the connection to a peer.
type Link struct {
	Peer Peer
	// Age is the staleness of the view of the peer by nonce echo, without a
	// common clock: everything it had counted and sent then is known. It is -1
	// before the first message.
	Age time.Duration
	// Unsent is Age plus the time that the oldest increment without a message
	// had been delayed, -1 likewise.
	Unsent time.Duration
	// Lag is how old the view gets while the peer has something to send, -1
	// before the first message. An idle peer sends heartbeats alone.
	Lag time.Duration
	// RTT is the round trip, smoothed from below, -1 for unknown.
	RTT time.Duration
	// Acked is the version that the peer acknowledged, Head the latest version,
	// and Contiguous the version of the peer that was received without gaps.
	Acked, Head, Contiguous uint64
	// Base is where the versions of the latest resync begin, which sends all
	// cells again: an acknowledgement up to there proves nothing.
	Base uint64
	// Silent: no message arrived for three heartbeats, or the peer did not
	// answer in time.
	Silent bool
	// Unused: no message was sent to the peer, and the first one waits for a
	// heartbeat.
	Unused bool
	// Rules is the hash of the peer's rules, 0 before the first message.
	Rules uint64
	// Differs: its rules differ from those in force here.
	Differs bool
}

// Expected returns an age of the view, Age or Unsent, or the lag if that is
// less and the peer is not silent: had it counted hits that decisions depend
// on, it would have sent them.
func (l *Link) Expected(age time.Duration) time.Duration {
	if l.Silent || l.Lag <= 0 {
		return age
	}
	return min(age, l.Lag)
}

// Links returns the state of the connections to all peers, by their IDs. The
// engine must not change while they are read.
func (e *Engine) Links(now time.Duration) iter.Seq[Link] {
	return func(yield func(Link) bool) {
		for _, l := range e.links {
			d := Link{
				Peer: l.peer, Age: -1, Unsent: -1, Lag: -1, RTT: l.rtt, Acked: l.settled(&e.dispatched),
				Head: l.base + e.state.version, Contiguous: l.contiguous, Silent: l.silent, Unused: l.unused, Rules: l.rules, Differs: l.differs,
				Base: l.base,
			}
			if l.echoed != 0 {
				d.Age, d.Unsent, d.Lag = l.age(now)-l.unsent, l.age(now), l.lag+max(0, l.rtt)/2+l.unsent
			}
			if !yield(d) {
				return
			}
		}
	}
}

// Cells returns the cells that have not ended at wall (Unix milliseconds), in
// their order. It uses the memory of room, which may be nil.
func (e *Engine) Cells(wall int64, room []Cell) []Cell {
	out := slices.Grow(room[:0], e.state.cells.used)
	for i := range int32(e.state.cells.used) {
		if c := e.state.cells.at(i); c.used {
			out = append(out, e.state.copy(c))
		}
	}
	out = Live(out, wall)
	slices.SortFunc(out, func(a, b Cell) int { return a.CellID.Compare(b.CellID) })
	return out
}

// Live removes the cells that have ended at wall (Unix milliseconds). A count
// ends with the one of the longest carry among those of its key and window.
func Live(cells []Cell, wall int64) []Cell {
	type name struct {
		key    crdt.Key
		window int64
	}
	ended := func(c Cell) bool { return c.End(c.Window) <= wall }
	if !slices.ContainsFunc(cells, ended) {
		return cells
	}
	live := map[name]bool{}
	for i := range cells {
		if c := &cells[i]; c.Kind.Counts() && !ended(*c) {
			live[name{c.Key, c.Window}] = true
		}
	}
	return slices.DeleteFunc(cells, func(c Cell) bool {
		return ended(c) && !(c.Kind.Counts() && live[name{c.Key, c.Window}])
	})
}

// FullKeys returns the keys that have as many cells as one key may have, in no
// order: the engine refuses more cells of them. It must not change while they
// are read.
func FullKeys(e *Engine) iter.Seq[crdt.Key] {
	return func(yield func(crdt.Key) bool) {
		for i := range int32(e.state.keys.used) {
			if k := e.state.keys.at(i); k.cells >= maxCellsOfKey && !yield(k.key) {
				return
			}
		}
	}
}

// Keeps reports whether a daemon keeps a cell: others count on it to have it.
// In a region that counts in two hops it keeps the cells of the keys that it
// aggregates, and as the successor those of daemon counts that the aggregator
// alone would have; in others it keeps all.
func Keeps(e *Engine, c CellID) bool { return keptBy(e, c, e.self.ID) }

// KeptBy reports whether a peer keeps a cell, in the view of a daemon.
func KeptBy(e *Engine, c CellID, peer crdt.Incarnation) bool {
	return linkOf(e, peer) != nil && keptBy(e, c, peer)
}

func keptBy(e *Engine, c CellID, daemon crdt.Incarnation) bool {
	p := e.roles.regions[0].pair(c.Key)
	written := c.Incarnation == e.self.ID || linkOf(e, c.Incarnation) != nil
	switch {
	case c.Kind == Others:
		return false
	case !e.roles.two, p.aggregator == daemon:
		return true
	case c.Kind == Daemon:
		return p.successor == daemon && (p.aggregator == c.Incarnation || !written)
	}
	return c.Kind != RegionSum
}

// Withholds reports whether a daemon, as the aggregator of a key, may not have
// sent the sum of the region in a window to other regions: no decision there
// depends on it. sent is the hits and refunds of the sum that all of them were
// sent.
func Withholds(e *Engine, k crdt.Key, window int64) (sent uint64, ok bool) {
	at := e.state.keyOf(k)
	if at == none || e.leaving || e.roles.own(k) != e.self.ID {
		return 0, false
	}
	for i := e.state.firstOf(at); i != none; i = e.state.cells.at(i).ofKey.next {
		if c := e.state.cells.at(i); c.Kind == Daemon && c.Window == window {
			k := e.state.keys.at(at)
			return k.sent(window), e.state.withholdable(c) && (k.sumOf != window || e.state.unsentSum(c) < k.slack)
		}
	}
	return 0, false
}

// RTT returns the round trip to a peer, -1 for unknown.
func (e *Engine) RTT(id crdt.Incarnation) time.Duration {
	if l := linkOf(e, id); l != nil {
		return l.rtt
	}
	return -1
}

// current reports whether all regional peers sent all of their cells, none of
// which was omitted, and are not silent.
func (ls links) current(now time.Duration) bool {
	return !slices.ContainsFunc(ls, func(l *link) bool {
		return l.local && (!l.whole || l.lacks || l.accepted < l.contiguous || l.omittedAt != 0 || !l.heard(now))
	})
}
