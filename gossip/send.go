package gossip

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
)

// Messages returns what is due at now. stamp is the daemon's clock, rules the
// hash of its rules.
func (e *Engine) Messages(now time.Duration, stamp hlc.Timestamp, rules uint64) []Message {
	e.urgent = false
	due := 0
	for _, l := range e.links {
		if e.dueAt(l) <= now {
			due++
		}
	}
	if due == 0 {
		return nil
	}
	out := make([]Message, 0, due)
	for _, l := range e.links {
		if e.dueAt(l) <= now {
			out = append(out, e.message(now, l, stamp, rules))
		}
	}
	return out
}

// dueAt is when a link is to send next.
func (e *Engine) dueAt(l *link) time.Duration {
	if l.hurried() {
		return min(l.due, max(l.lastSent+e.cfg.MinGap, 0))
	}
	return l.due
}

// window bounds the cells that are on their way to a peer that acknowledges
// nothing, in frames.
const window = 8

// message is what a link sends at now: the cells that are urgent, for
// themselves, or all changes. When both are due they take turns.
func (e *Engine) message(now time.Duration, l *link, stamp hlc.Timestamp, rules uint64) Message {
	e.maybeResend(now, l)
	m := Message{From: e.self.ID, To: l.peer.ID, Shard: e.shard, Shards: e.shards}
	m.Header = Header{Stamp: stamp, Rules: rules, Ready: e.ready(), Nonce: micros(now)}
	if l.nonce != 0 {
		m.Echo, m.Held = l.nonce, micros(now-l.nonceAt)
	}
	m.Ack = l.contig
	m.Refused = carried(l.refused, m.Nonce)
	m.Repair = carried(l.repair, m.Nonce)
	m.Lo, m.Hi = l.sent, l.sent
	l.lastNonce, l.lastSent = m.Nonce, now
	if l.hurried() && !(l.due <= now && l.express) {
		e.express(now, l, &m)
	} else {
		e.changesFor(now, l, &m)
	}
	return m
}

// express puts the urgent cells into a message that covers no versions: they
// are told again with all others, so that a loss costs only the hurry.
func (e *Engine) express(now time.Duration, l *link, m *Message) {
	m.Expedited = true
	m.RightsMessages, l.notes = l.notes, nil
	n, cells := 0, e.picked[:0]
	for _, i := range l.urgent {
		if len(cells) == e.cfg.FrameCells {
			break
		}
		n++
		if c := &e.state.cells[i]; c.used && c.version != 0 && e.tells(l, c) {
			cells = append(cells, i)
		}
	}
	e.tell(l, m, cells)
	l.urgent, l.express = append(l.urgent[:0], l.urgent[n:]...), true
	l.due = max(l.due, now+e.cfg.MinGap)
}

// tell makes cells those of a message, each name once and in order.
func (e *Engine) tell(l *link, m *Message, cells []int32) {
	e.picked = cells
	if len(cells) == 0 {
		return
	}
	slices.SortFunc(cells, func(a, b int32) int { return e.compare(l, &e.state.cells[a], &e.state.cells[b]) })
	m.Cells = make([]Cell, 0, len(cells))
	for n, i := range cells {
		c := &e.state.cells[i]
		if c.Incarnation == e.self.ID {
			c.sent = c.Value.P
		}
		if n == 0 || e.compare(l, &e.state.cells[cells[n-1]], c) != 0 {
			m.Cells = append(m.Cells, e.telling(l, c))
		}
	}
}

// compare orders cells by the names under which a peer is told of them.
func (e *Engine) compare(l *link, a, b *cell) int {
	if a.Kind == b.Kind && (a.Incarnation == b.Incarnation || a.Kind == Daemon && !l.local) {
		return compareInIncarnation(&a.CellID, &b.CellID)
	}
	x, y := e.name(l, a), e.name(l, b)
	return x.Compare(y)
}

// name returns the cell that a peer is told of where c changed: a peer of
// another region hears of the sum of ours.
func (e *Engine) name(l *link, c *cell) CellID {
	if c.Kind == Daemon && !l.local {
		return CellID{Key: c.Key, Window: c.Window, Kind: RegionSum, Incarnation: e.region}
	}
	return c.CellID
}

// changesFor puts all changes into a message that the peer was not sent yet.
func (e *Engine) changesFor(now time.Duration, l *link, m *Message) {
	settled := l.acked == l.sent
	compare := l.local && now/e.cfg.DigestEvery > l.digestAt/e.cfg.DigestEvery
	if compare {
		e.releaseDigested(now)
	}
	e.fill(now, l, m)
	if settled {
		l.openNonce, l.openHi = m.Nonce, m.Hi
	}
	m.Own = e.ownAge(now)
	if l.local {
		m.Staleness = e.behind(now)
	}
	if compare && m.Complete {
		l.digestAt = now
		m.Digests = e.state.digestsOf(e.self.ID)
	}
	l.sent, l.express = m.Hi, false
	l.reached = max(l.reached, l.sent)
	l.due = e.next(now, l)
	if !m.Complete && l.inflight < window*e.cfg.FrameCells {
		l.due = min(l.due, now+e.cfg.MinGap)
	}
}

func micros(d time.Duration) uint64 { return uint64(max(1, d.Microseconds())) }

// maybeResend starts again from what was acknowledged when no acknowledgement
// came in time.
func (e *Engine) maybeResend(now time.Duration, l *link) {
	if l.acked == l.sent {
		l.backoff, l.resendAt = 0, 0
		return
	}
	if now < l.resendAt {
		return
	}
	if l.resendAt != 0 {
		e.rewind(now, l)
		l.backoff = min(l.backoff+1, 4)
	}
	l.resendAt = now + e.patience(l)<<l.backoff
}

// rewind makes the next message start from what was acknowledged.
func (e *Engine) rewind(now time.Duration, l *link) {
	e.event(now, Resent, l.peer.ID, 0, 0)
	l.sent, l.cursor, l.inflight = l.acked, none, 0
}

// patience is how long an acknowledgement may take.
func (e *Engine) patience(l *link) time.Duration {
	trip := max(l.rtt, 0)
	if l.rtt < 0 {
		trip = 4 * e.interval(l)
	}
	return 2*trip + 3*e.interval(l)
}

// fill puts the changes into a message that the peer was not sent yet.
func (e *Engine) fill(now time.Duration, l *link, m *Message) {
	hi := l.real()
	room := min(e.cfg.FrameCells, window*e.cfg.FrameCells-l.inflight)
	room = min(room, (e.cfg.FrameBytes+cellBytes-1)/cellBytes)
	cells := e.picked[:0]
	i := e.state.after(hi, l.cursor)
	for i != none && len(cells) < room {
		c := &e.state.cells[i]
		if e.tells(l, c) {
			cells = append(cells, i)
		}
		hi, l.cursor = c.version, i
		i = c.next
	}
	e.tell(l, m, cells)
	l.inflight += len(m.Cells)
	m.Complete = i == none
	if m.Complete {
		hi = e.state.version
		if l.sweeping && l.acked >= l.base+l.sweepTo {
			l.sweeping = false
			e.event(now, ResyncDone, l.peer.ID, 0, 0)
		}
	} else {
		m.Unsent = now - e.state.cells[i].since
	}
	m.Hi = max(l.base+hi, m.Lo)
	if w := e.state.waitHead; w != none {
		m.Unsent = max(m.Unsent, now-e.state.cells[w].since)
	}
}

// cellBytes is about what a cell takes in a frame.
const cellBytes = 24

// tells reports whether a peer is told of a cell.
func (e *Engine) tells(l *link, c *cell) bool {
	switch {
	case c.Kind == Given:
		return c.Incarnation == l.peer.ID
	case c.Kind == Transferred:
		return l.local && c.Incarnation == e.self.ID
	case c.Kind == Received, c.Incarnation == l.peer.ID:
		return false
	case l.local:
		return e.tellsHere(l, c)
	case c.Kind == Daemon:
		return e.tellsSum(l, c)
	}
	// What we know of the peer's own region, should it have forgotten.
	return c.Incarnation == l.incarnation && (c.version <= l.sweepTo || e.link(c.from) == nil)
}

// telling is what a peer is told of a cell.
func (e *Engine) telling(l *link, c *cell) Cell {
	if c.Kind == Daemon && !l.local {
		v, span := e.sum(c.Key, c.Window)
		return Cell{CellID: e.name(l, c), CellMeta: span, Value: crdt.PN(v)}
	}
	out := c.Cell
	if c.Kind == Daemon {
		out.Rate = 0 // the receiver measures it, from the writer itself
	}
	return out
}

// tellsHere reports whether a daemon of the region is told of a cell: when new,
// of all; later of our own, whose only writer we are. What no live daemon of
// the region writes, sums of other regions and slots of daemons that are gone,
// goes by way of the key's aggregator: whoever hears of it first tells it, and
// it tells all.
func (e *Engine) tellsHere(l *link, c *cell) bool {
	switch {
	case c.Kind == RegionSum && c.Incarnation == e.region:
		return false
	case c.version <= l.sweepTo:
		return true
	case c.Kind == Daemon && (c.Incarnation == e.self.ID || c.Incarnation == e.lost):
		return true
	case c.Kind == Daemon && e.link(c.Incarnation) != nil, c.from == l.peer.ID:
		return false
	}
	winner := e.aggregator(c)
	return winner == e.self.ID || winner == l.peer.ID
}

// tellsSum reports whether the change of a daemon's cell is ours to tell a peer
// of another region, as the sum of ours. Of several changes of one sum the last
// one tells.
func (e *Engine) tellsSum(l *link, c *cell) bool {
	if c.Regional || e.aggregator(c) != e.self.ID || e.teams[l.team].aggregator(c.Key) != l.peer.ID {
		return false
	}
	for i := e.state.keys[c.key].first; i != none; i = e.state.cells[i].fwd {
		if o := &e.state.cells[i]; o.Kind == Daemon && o.Window == c.Window && (o.Regional || o.version > c.version) {
			return false
		}
	}
	return true
}

// aggregator returns who sums up the key of a cell for our region.
func (e *Engine) aggregator(c *cell) crdt.Incarnation {
	k := &e.state.keys[c.key]
	if k.arranged != e.arranged {
		k.aggregator, k.arranged = e.teams[0].aggregator(c.Key), e.arranged
	}
	return k.aggregator
}

// ownAge is how old our view of our own region is at most, of the daemons that
// are heard.
func (e *Engine) ownAge(now time.Duration) time.Duration {
	oldest := time.Duration(0)
	for _, l := range e.links {
		if l.local {
			if age, ok := e.view(now, l); ok {
				oldest = max(oldest, age)
			}
		}
	}
	return oldest
}

// behind lists how old our view of each other region is, of the daemons that
// are heard.
func (e *Engine) behind(now time.Duration) []Staleness {
	var out []Staleness
	for _, l := range e.links {
		if l.local {
			continue
		}
		age, ok := e.view(now, l)
		if !ok {
			continue
		}
		age += l.own
		if i := slices.IndexFunc(out, func(b Staleness) bool { return b.Region == l.incarnation }); i >= 0 {
			out[i].Age = max(out[i].Age, age)
		} else {
			out = append(out, Staleness{l.incarnation, age})
		}
	}
	slices.SortFunc(out, func(a, b Staleness) int { return order(uint64(a.Region), uint64(b.Region)) })
	return out
}
