package gossip

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

// Link is what is known of a peer.
type Link struct {
	Peer Peer
	// Age is how old the view of the peer is by nonce echo, which needs no
	// common clock: all it had counted and sent then is known. -1 when it
	// was never heard.
	Age time.Duration
	// Unsent is Age and, beside it, how long the oldest increment had waited
	// that its latest message did not cover. -1 likewise.
	Unsent time.Duration
	// RTT is the round trip, smoothed from below, -1 for unknown.
	RTT time.Duration
	// Acked is what the peer has of our versions, Head our latest, and
	// Contiguous what we have of the peer's.
	Acked, Head, Contiguous uint64
	// Silent: nothing came for three lags.
	Silent bool
	// Rules is the hash of its rules, 0 while nothing was heard.
	Rules uint64
	// Differs: its rules are not ours.
	Differs bool
}

// Links describes the peers, by their IDs.
func (e *Engine) Links(now time.Duration) []Link {
	out := make([]Link, 0, len(e.links))
	for _, l := range e.links {
		d := Link{
			Peer: l.peer, Age: -1, Unsent: -1, RTT: l.rtt, Acked: l.acked,
			Head: l.base + e.state.version, Contiguous: l.contig, Silent: l.silent, Rules: l.rules, Differs: l.differs,
		}
		if l.echoed != 0 {
			d.Age, d.Unsent = l.age(now)-l.unsent, l.age(now)
		}
		out = append(out, d)
	}
	return out
}

// Cells returns the cells that matter at an instant of the label clock, in
// their order.
func (e *Engine) Cells(wall int64) []Cell {
	var out []Cell
	for i := range e.state.cells {
		if c := &e.state.cells[i]; c.used && c.End(c.Window) > wall {
			out = append(out, c.Cell)
		}
	}
	slices.SortFunc(out, func(a, b Cell) int { return a.CellID.Compare(b.CellID) })
	return out
}

// Due reports whether any message is.
func (e *Engine) Due(now time.Duration) bool {
	for _, l := range e.links {
		if e.dueAt(l) <= now {
			return true
		}
	}
	return false
}

// RTT returns the round trip to a peer, -1 for unknown.
func (e *Engine) RTT(id crdt.Incarnation) time.Duration {
	if l := e.link(id); l != nil {
		return l.rtt
	}
	return -1
}
