package node

import (
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
)

// peerClock is what is known of a peer's clock: it is ahead of this one by low
// to high milliseconds, of which a message's time on the way is the difference.
type peerClock struct {
	low, high int64
	rejected  bool
	stamp     hlc.Timestamp // the latest that came
}

// observe takes in the stamp of a message. A clock too far ahead is not
// followed, which is told once until it is followed again.
func (n *Node) observe(at Instant, now int64, m *gossip.Message) {
	r := n.replica
	was := r.clocks[m.From]
	off := m.Stamp.Millis() - now
	is := peerClock{low: off, high: math.MaxInt64, stamp: max(was.stamp, m.Stamp)}
	if trip := r.engine.RTT(m.From); trip >= 0 {
		is.high = off + trip.Milliseconds()
	}
	if err := n.clock.Observe(at, m.Stamp); err != nil {
		is.rejected = true
		if !was.rejected {
			r.engine.Report(gossip.Event{At: at.Mono, Kind: gossip.DriftRejected, Peer: m.From, Amount: uint64(max(0, off))})
		}
	}
	r.clocks[m.From] = is
}

// Offsets returns by how much the peers' clocks are ahead, of those where that
// is known, to within half a round trip.
func (n *Node) Offsets() map[crdt.Incarnation]time.Duration {
	if n.replica == nil {
		return nil
	}
	out := make(map[crdt.Incarnation]time.Duration, len(n.replica.clocks))
	for id, c := range n.replica.clocks {
		if c.high != math.MaxInt64 {
			out[id] = time.Duration(c.low+c.high) * time.Millisecond / 2
		}
	}
	return out
}

// Stamps returns the latest time of each peer's clock that came here, for people.
func (n *Node) Stamps() map[crdt.Incarnation]hlc.Timestamp {
	if n.replica == nil {
		return nil
	}
	out := make(map[crdt.Incarnation]hlc.Timestamp, len(n.replica.clocks))
	for id, c := range n.replica.clocks {
		out[id] = c.stamp
	}
	return out
}

// watchClock compares this clock with the peers'. A wall clock that leapt ahead
// is believed when a majority has it too, and at once by a node that has no
// peers. A clock that more than half of the cluster contradicts is said to be
// off.
func (n *Node) watchClock(now time.Duration) {
	r := n.replica
	n.watchJump(now)
	limit := n.cfg.maxOffset() * 4 / 5
	var ahead, behind []int64
	for _, c := range r.clocks {
		if c.low > limit {
			ahead = append(ahead, c.low)
		}
		if c.high < -limit {
			behind = append(behind, -c.high)
		}
	}
	off := ahead
	if len(behind) > len(ahead) {
		off = behind
	}
	outlier := 2*len(off) > len(r.clocks)+1
	if outlier == r.outlier {
		return
	}
	r.outlier = outlier
	e := gossip.Event{At: now, Kind: gossip.ClockAgrees}
	if outlier {
		slices.Sort(off)
		e.Kind, e.Amount = gossip.ClockOutlier, uint64(off[len(off)/2])
	}
	r.engine.Report(e)
}

// watchJump decides about a leap of the wall clock that is held back.
func (n *Node) watchJump(now time.Duration) {
	r := n.replica
	jump := n.clock.Held()
	if jump == 0 {
		r.held = false
		return
	}
	with := 0
	for _, c := range r.clocks {
		if c.high != math.MaxInt64 && c.high > jump.Milliseconds()/2 {
			with++
		}
	}
	amount := uint64(jump.Milliseconds())
	switch {
	case 2*with > len(r.clocks) || len(r.clocks) == 0:
		n.clock.AdoptJump()
		r.held = false
		r.engine.Report(gossip.Event{At: now, Kind: gossip.JumpAdopted, Amount: amount})
	case !r.held:
		r.held = true
		r.engine.Report(gossip.Event{At: now, Kind: gossip.JumpHeld, Amount: amount})
	}
}
