package node

import (
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
)

// peerClock is the known offset of a peer's clock: it is ahead of this one by
// low to high milliseconds. The difference is the travel time of a message.
type peerClock struct {
	low, high int64
	rejected  bool
	stamp     hlc.Timestamp // the latest one received
}

// peerClocks compares this daemon's clock with those of its peers.
type peerClocks struct {
	of        map[crdt.Incarnation]peerClock
	maxOffset int64 // milliseconds
	outlier   bool  // most peers contradict this clock
	held      bool  // a jump of this clock is held back
}

// observe notes the stamp of a message and moves the clock to it, unless it is
// too far ahead. It reports a rejected clock once until it is accepted again.
func (p *peerClocks) observe(at Instant, now int64, clock *hlc.Clock, eng *gossip.Engine, m *gossip.Message) {
	was := p.of[m.From]
	off := m.Stamp.Millis() - now
	is := peerClock{low: off, high: math.MaxInt64, stamp: max(was.stamp, m.Stamp)}
	if trip := eng.RTT(m.From); trip >= 0 {
		is.high = off + trip.Milliseconds()
	}
	if err := clock.Observe(at, m.Stamp); err != nil {
		is.rejected = true
		if !was.rejected {
			eng.Report(gossip.Event{
				At: at.Mono, Kind: gossip.DriftRejected, Peer: m.From, Amount: uint64(max(0, off)),
			})
		}
	}
	p.of[m.From] = is
}

// tick checks this clock against those of the peers. A jump of the wall clock
// is adopted if a majority has it too, and at once by a node without peers. A
// clock that more than half of the cluster contradicts is an outlier.
func (p *peerClocks) tick(now time.Duration, clock *hlc.Clock, eng *gossip.Engine) {
	p.checkJump(now, clock, eng)
	limit := p.maxOffset * 4 / 5
	var ahead, behind []int64
	for _, c := range p.of {
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
	outlier := 2*len(off) > len(p.of)+1
	if outlier == p.outlier {
		return
	}
	p.outlier = outlier
	e := gossip.Event{At: now, Kind: gossip.ClockAgrees}
	if outlier {
		slices.Sort(off)
		e.Kind, e.Amount = gossip.ClockOutlier, uint64(off[len(off)/2])
	}
	eng.Report(e)
}

// checkJump decides on a jump of the wall clock that is held back.
func (p *peerClocks) checkJump(now time.Duration, clock *hlc.Clock, eng *gossip.Engine) {
	jump := clock.Held()
	if jump == 0 {
		p.held = false
		return
	}
	with := 0
	for _, c := range p.of {
		if c.high != math.MaxInt64 && c.high > jump.Milliseconds()/2 {
			with++
		}
	}
	amount := uint64(jump.Milliseconds())
	switch {
	case 2*with > len(p.of) || len(p.of) == 0:
		clock.AdoptJump()
		p.held = false
		eng.Report(gossip.Event{At: now, Kind: gossip.JumpAdopted, Amount: amount})
	case !p.held:
		p.held = true
		eng.Report(gossip.Event{At: now, Kind: gossip.JumpHeld, Amount: amount})
	}
}

// Offsets returns the known leads of the peers' clocks over this one, to within
// half a round trip.
func (n *Node) Offsets() map[crdt.Incarnation]time.Duration {
	if n.replica == nil {
		return nil
	}
	out := make(map[crdt.Incarnation]time.Duration, len(n.replica.clocks.of))
	for id, c := range n.replica.clocks.of {
		if c.high != math.MaxInt64 {
			out[id] = time.Duration(c.low+c.high) * time.Millisecond / 2
		}
	}
	return out
}

// Stamps returns the latest stamp received from each peer.
func (n *Node) Stamps() map[crdt.Incarnation]hlc.Timestamp {
	if n.replica == nil {
		return nil
	}
	out := make(map[crdt.Incarnation]hlc.Timestamp, len(n.replica.clocks.of))
	for id, c := range n.replica.clocks.of {
		out[id] = c.stamp
	}
	return out
}
