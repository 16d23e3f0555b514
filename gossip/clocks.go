package gossip

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
)

// Clocks compares the clock of this daemon with those of its peers. It is not
// safe for concurrent use.
type Clocks struct {
	peers     []peerClock // ids ascending
	apart     int         // those that contradict this clock, silent ones too
	maxOffset int64       // milliseconds
	outlier   bool        // most of the cluster contradicts this clock
	held      bool        // a jump of this clock is held back
}

// longestTrip is the longest time that a message takes, in milliseconds: a
// stream without progress is ended before. It bounds the clocks of peers whose
// round trip is not known, such as those that reject this daemon's messages for
// its clock.
const longestTrip = 60_000

// peerClock is the known offset of a peer's clock: it is ahead of this one by
// low to high milliseconds. The difference is the round trip of a message and
// what rounding to milliseconds loses. high is math.MaxInt64 while the round
// trip is not known.
type peerClock struct {
	id        crdt.Incarnation
	low, high int64
	rejected  bool
	stamp     hlc.Timestamp // the latest one received
}

// NewClocks returns the clocks of no peers. maxOffset is that of the clock.
func NewClocks(maxOffset time.Duration) Clocks {
	return Clocks{maxOffset: maxOffset.Milliseconds()}
}

// Keep drops the clocks of all but some peers.
func (c *Clocks) Keep(peers []Peer) {
	ids := make([]crdt.Incarnation, len(peers))
	for i := range peers {
		ids[i] = peers[i].ID
	}
	slices.Sort(ids)
	c.peers = slices.DeleteFunc(c.peers, func(is peerClock) bool {
		_, kept := slices.BinarySearch(ids, is.id)
		return !kept
	})
	c.count()
}

// count counts the clocks that contradict this one.
func (c *Clocks) count() {
	c.apart = 0
	for i := range c.peers {
		c.apart += c.peers[i].contradicts(c.limit())
	}
}

// limit returns the offset in milliseconds from which on a clock contradicts
// another one.
func (c *Clocks) limit() int64 { return c.maxOffset * 4 / 5 }

// lead returns by how much the peer's clock is ahead of this one, or behind it,
// at least.
func (p *peerClock) lead() (ahead, behind int64) {
	return p.low, -min(p.high, p.low+longestTrip)
}

// contradicts returns 1 for a clock that is off by more than a limit, else 0.
func (p *peerClock) contradicts(limit int64) int {
	if ahead, behind := p.lead(); ahead > limit || behind > limit {
		return 1
	}
	return 0
}

// of returns the clock of the peer of a link, a new one at first.
func (c *Clocks) of(l *link) *peerClock {
	if id := l.peer.ID; l.clock >= len(c.peers) || c.peers[l.clock].id != id {
		at, known := slices.BinarySearchFunc(c.peers, id, func(is peerClock, id crdt.Incarnation) int { return cmp.Compare(is.id, id) })
		if l.clock = at; !known {
			c.peers = slices.Insert(c.peers, at, peerClock{id: id})
		}
	}
	return &c.peers[l.clock]
}

// Outlier reports whether more than half of the cluster contradicts this clock,
// without silent peers.
func (c *Clocks) Outlier() bool { return c.outlier }

// MaxOffset returns the maximum offset in milliseconds.
func (c *Clocks) MaxOffset() int64 { return c.maxOffset }

// Observe notes the stamp of a message and moves the clock to it, unless it is
// too far ahead. Of a message without a stamp it notes the one that is derived
// from an earlier one. It reports a rejected clock to e, once until it is
// accepted again. now is the clock's time in Unix milliseconds.
func (c *Clocks) Observe(at hlc.Instant, now int64, clock *hlc.Clock, e *Engine, m *Message) {
	l := linkOf(e, m.From)
	if l == nil || l.wallNonce == 0 {
		return
	}
	is := c.of(l)
	off, rejected := m.Stamp.Millis()-now, is.rejected
	was := is.contradicts(c.limit())
	if is.stamp, is.rejected = max(is.stamp, m.Stamp), false; m.Stamp == 0 {
		off = l.wall + int64(m.Nonce-l.wallNonce)/int64(noncesPerMilli) - now - clockTolerance
		is.rejected = off > c.maxOffset
	} else if err := clock.Observe(at, m.Stamp); err != nil {
		is.rejected = true
	}
	if is.low, is.high = off, math.MaxInt64; l.rtt >= 0 {
		is.high = off + l.rtt.Milliseconds() + 1 // stamps and the round trip are rounded down
		if m.Stamp == 0 {
			is.high += 2 * clockTolerance
		}
	}
	c.apart += is.contradicts(c.limit()) - was
	if is.rejected && !rejected {
		e.event(at.Mono, DriftRejected, m.From, 0, uint64(max(0, off)))
	}
}

// Tick checks the clock against those of the peers, and reports changes to e. A
// jump of the wall clock is adopted if a majority of the cluster has it, with
// this daemon: at once without peers. A clock that more than half of the
// cluster contradicts is an outlier. Silent peers do not count: their clocks
// may have been set right since.
func (c *Clocks) Tick(now time.Duration, clock *hlc.Clock, e *Engine) {
	c.checkJump(now, clock, e)
	if c.apart == 0 && !c.outlier {
		return
	}
	limit := c.limit()
	var ahead, behind []int64
	heard := 0
	for i := range c.peers {
		p := &c.peers[i]
		if l := linkOf(e, p.id); l != nil && l.silent {
			continue
		}
		heard++
		a, b := p.lead()
		if a > limit {
			ahead = append(ahead, a)
		}
		if b > limit {
			behind = append(behind, b)
		}
	}
	off := ahead
	if len(behind) > len(ahead) {
		off = behind
	}
	outlier := 2*len(off) > heard+1
	if outlier == c.outlier {
		return
	}
	if c.outlier = outlier; !outlier {
		e.event(now, ClockAgrees, 0, 0, 0)
		return
	}
	slices.Sort(off)
	e.event(now, ClockOutlier, 0, 0, uint64(off[len(off)/2]))
}

// checkJump decides on a jump of the wall clock that is held back.
func (c *Clocks) checkJump(now time.Duration, clock *hlc.Clock, e *Engine) {
	jump := clock.Held()
	if jump == 0 {
		c.held = false
		return
	}
	with := 1 // this clock
	for i := range c.peers {
		p := &c.peers[i]
		if p.high != math.MaxInt64 && p.high > jump.Milliseconds()/2 {
			with++
		}
	}
	amount := uint64(jump.Milliseconds())
	switch {
	case 2*with > len(c.peers)+1:
		clock.AdoptJump()
		c.held = false
		e.event(now, JumpAdopted, 0, 0, amount)
	case !c.held:
		c.held = true
		e.event(now, JumpHeld, 0, 0, amount)
	}
}

// Offsets returns the known leads of the peers' clocks over this one, to within
// half a round trip.
func (c *Clocks) Offsets() map[crdt.Incarnation]time.Duration {
	out := make(map[crdt.Incarnation]time.Duration, len(c.peers))
	for i := range c.peers {
		p := &c.peers[i]
		if p.high != math.MaxInt64 {
			out[p.id] = time.Duration(p.low+p.high) * time.Millisecond / 2
		}
	}
	return out
}

// Stamps returns the latest stamp received from each peer.
func (c *Clocks) Stamps() map[crdt.Incarnation]hlc.Timestamp {
	out := make(map[crdt.Incarnation]hlc.Timestamp, len(c.peers))
	for i := range c.peers {
		p := &c.peers[i]
		out[p.id] = p.stamp
	}
	return out
}
