package gossip

import (
	"errors"
	"fmt"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// Change is the effect of a message on the counts of a key and window.
type Change struct {
	Key    crdt.Key
	Window int64
	Span   CellMeta
	Gain   uint64 // newly known hits
	// Less is the number of newly known refunds.
	Less uint64
	// Bounded reports that at most Most hits of a bucket are in use, with all
	// changes of its key before this one.
	Bounded bool
	Most    uint64
	// Transfer is the number of rights that From newly transferred to this
	// daemon.
	Transfer uint64
	From     crdt.Incarnation
	at, cell int32 // indices of the key and of the cell
}

// ErrMisplaced is returned for a message to another incarnation or shard. A
// peer that does not know of a restart sends such messages.
var ErrMisplaced = errors.New("gossip: message for another incarnation or shard")

// UnknownSenderError is returned for a message from an incarnation that is no
// member.
type UnknownSenderError struct{ Sender crdt.Incarnation }

// Error returns a text with the sender.
func (e *UnknownSenderError) Error() string {
	return fmt.Sprintf("gossip: message of %v, which is no member", e.Sender)
}

// ShardsError is returned for a message from a peer with another number of
// shards.
type ShardsError struct{ Theirs, Ours int }

// Error returns a text with both numbers.
func (e *ShardsError) Error() string {
	return fmt.Sprintf("gossip: peer splits its keys over %d shards and not %d", e.Theirs, e.Ours)
}

// Receive merges a message. wall is the window clock in Unix milliseconds,
// ahead the milliseconds by which a peer's clock may be ahead of it, rules the
// hash of the rules in force. The changes are valid until the next call. After
// an error, ErrMisplaced, an *UnknownSenderError or a *ShardsError, nothing was
// merged.
func (e *Engine) Receive(now time.Duration, wall, ahead int64, rules uint64, m *Message) ([]Change, error) {
	if m.Shards != e.shards {
		return nil, &ShardsError{m.Shards, e.shards}
	}
	if m.To != e.self.ID || m.Shard != e.shard || m.From == e.self.ID {
		return nil, ErrMisplaced
	}
	l := linkOf(e, m.From)
	if l == nil {
		return nil, &UnknownSenderError{m.From}
	}
	newer := m.Nonce > l.nonce
	if newer {
		e.header(now, l, m, rules)
		if m.Answers {
			e.acknowledged(now, l, m)
		}
	}
	called(e, now)
	e.changes = e.changes[:0]
	unknown := l.keys.restore(m, l.contiguous, sentAt(l.echoed) > l.joined)
	if notes(m) {
		l.keys.note(m)
	}
	if unknown += l.metas.named(m); unknown > 0 {
		e.event(now, MetaUnknown, l.peer.ID, 0, uint64(unknown))
		m.Hi, m.Complete = m.Lo, false
	}
	for i := range m.Cells { // see scope.refer
		if c := &m.Cells[i]; c.Kind == RegionSum && c.Incarnation == m.From {
			c.Incarnation = l.incarnation
		} else if c.Kind == RegionSum && c.Incarnation == m.To {
			c.Incarnation = e.region
		}
	}
	floor := wall - e.cfg.Grace.Milliseconds()
	e.found = e.state.locate(e.found[:0], m.Cells, e.self.ID, l.peer.ID)
	for i := range m.Cells {
		e.merge(now, l, m, i, floor, wall+ahead)
		if m.Cells[i].Level > 0 {
			boundBucket(e, l, m.Cells[:i+1])
		}
	}
	receiveLoads(e, now, wall+ahead, l, m.Loads)
	known := m.Lo <= l.contiguous
	if known && m.Hi > l.contiguous {
		l.contiguous = m.Hi
	}
	// A peer that leaves must know that cells of it are nowhere else.
	if m.Lo <= l.accepted && m.Hi > l.accepted && (m.Ready || l.omittedAt == 0) {
		l.accepted = m.Hi
	}
	if newer && m.Complete && m.Hi <= l.contiguous {
		if l.omittedAt == 0 && m.Lo <= l.accepted { // also a peer that has no cells any more
			l.accepted = l.contiguous
		}
		e.complete(now, l, m)
	}
	if newer {
		l.lacks = !m.Complete
		l.answer(now, m, known)
		l.settleDue()
	}
	return e.changes, nil
}

// header handles the parts of a message that do not depend on the cells.
func (e *Engine) header(now time.Duration, l *link, m *Message, rules uint64) {
	l.nonce, l.nonceAt = m.Nonce, now
	l.answered = max(l.answered, min(m.Echo, uint64(now/NonceUnit)))
	l.measureRTT(now, m)
	l.settleRefused(m.Echo)
	l.repair = settle(l.repair, m.Echo)
	if m.Answers && m.Echo == 0 { // it may have a new link, and lack them
		l.announcedRules.at, l.announcedClock.at = -1, -1
	}
	l.announcedRules.settle(m.Echo)
	l.announcedClock.settle(m.Echo)
	if m.Stamp != 0 {
		l.wall, l.wallNonce = m.Stamp.Millis(), m.Nonce
	}
	if m.Rules != 0 {
		l.rules = m.Rules
	}
	if differs := l.rules != 0 && l.rules != rules; differs != l.differs {
		l.differs = differs
		kind := RulesAgree
		if differs {
			kind = RulesDiverged
		}
		e.event(now, kind, l.peer.ID, 0, 0)
	}
	if l.ready != m.Ready && (m.Ready || e.leaving || !l.starting(now)) {
		l.ready = m.Ready
		if l.local && len(e.links) < manyLinks {
			e.reassign(now)
		} else {
			e.unassigned = true
		}
	}
}

// acknowledged handles an acknowledgement. A lower one than before means that
// the peer lost its state: it receives a resync.
func (e *Engine) acknowledged(now time.Duration, l *link, m *Message) {
	switch {
	case m.Ack > l.sent && m.Ack > l.base+e.state.version:
		return // was never sent
	case m.Ack < l.acked:
		l.acked = m.Ack
		l.resync(e.state.version)
		l.resyncTo = e.state.version
		l.greeting, l.greeted, l.completeNonce = true, 0, 0
		l.announcedRules.at, l.announcedClock.at = -1, -1
		l.owe(l.next(now))
		e.event(now, ResyncStarted, l.peer.ID, 0, 0)
	case m.Ack > l.acked:
		if l.inflight >= maxInflight*e.cfg.FrameCells { // the rest waited for it
			l.owe(l.lastSent + l.shortest())
		}
		l.acked, l.inflight, l.backoff = m.Ack, 0, 0
		l.sent = max(l.sent, l.acked)
		l.settleLack()
		l.resendAt = now + l.patience()
		l.openNonce, l.openHi = l.lastNonce, l.sent
	case m.Echo >= l.openNonce && m.Ack < l.openHi && l.acked < l.sent:
		l.rewind()
		l.due = min(l.due, l.next(now))
		l.queue.fix(l)
		e.event(now, Resent, l.peer.ID, 0, 0)
		l.resendAt = now + l.patience()
	}
	e.refused = e.refused[:0]
	for _, r := range m.Refused[:min(len(m.Refused), MaxRefused)] {
		known, full := e.retries.add(now, r.CellID)
		if full {
			e.refused = append(e.refused, r.CellID)
		}
		if !known {
			e.event(now, RefusalReceived, l.peer.ID, r.Reason, 1)
		}
	}
	e.state.resend(now, e.region, e.refused)
	// Each repair checks all cells, and the list is in each message until it is
	// echoed: one repair is enough until digests are compared again.
	if len(m.Repair) > 0 && (l.repairedAt == 0 || now-l.repairedAt >= e.cfg.DigestEvery/2) {
		l.repairedAt = now
		e.event(now, BucketRepaired, l.peer.ID, 0, e.state.repair(now, e.self.ID, m.Repair))
	}
}

// complete handles a complete message: cells that are not in it did not change.
func (e *Engine) complete(now time.Duration, l *link, m *Message) {
	known := len(e.links) > quietLinks && l.echoNonce != 0 && l.answered >= l.echoNonce // by the peer, the round trip
	if l.echoed == 0 && l.answered != 0 && !known {
		l.owe(now + l.shortest())
	}
	if l.echoed == 0 && l.answered != 0 || l.silent {
		e.unassigned = e.unassigned || e.leaving && l.local // it is not gone
	}
	l.complete(now, m)
	e.queue.silentAt = min(e.queue.silentAt, l.silentAt())
	if l.silent {
		l.silent = false
		l.greeting, l.greeted = true, 0 // it may have missed what it was informed of
		e.roles.heard(l)
		e.event(now, PeerResponding, l.peer.ID, 0, 0)
		askRegion(e, now, l.region, true)
		if l.local && e.roles.two && len(e.roles.regions[0].silent) > 0 { // it may take the part of another one
			e.resync(now, l)
		}
	}
	if l.greeting && l.local && e.roles.two {
		l.owe(l.next(now))
	}
	if !l.whole {
		l.whole = true
		e.sync(now)
	}
	l.settleRates(&e.state, now)
	if len(m.Digests) > 0 && !e.roles.two && len(l.repair) == 0 && m.Hi == l.contiguous {
		for _, b := range e.state.differing(m.From, m.Digests) {
			l.repair = append(l.repair, listed[uint16]{item: b})
		}
	}
}

// merge merges a cell, or refuses it.
func (e *Engine) merge(now time.Duration, l *link, m *Message, at int, floor, newest int64) {
	in := &m.Cells[at]
	if !l.maySend(in, e.self.ID, e.region) {
		e.event(now, CellForged, l.peer.ID, 0, 1)
		return // acknowledged and ignored: it will never be valid
	}
	if in.End(in.Window) <= floor {
		e.event(now, CellStale, l.peer.ID, 0, 1)
		return
	}
	if implausible(e, l, in) {
		e.event(now, TransferRejected, l.peer.ID, Implausible, 1)
		if !l.refuse(in.CellID, Implausible) {
			l.omitted(now)
		}
		return
	}
	id, f := in.CellID, e.found[at]
	if in.Kind == Given {
		id.Kind, id.Incarnation, f.at = Received, l.peer.ID, none
	}
	if f.at == none { // an earlier cell of the message may have made it
		f.at = e.state.find(id)
	}
	if f.at == none {
		reason := NoRoom
		if sat.AddInt(newest, in.WindowLength) < in.Window {
			reason = TooFarAhead
		} else {
			f.at = e.state.add(id, in.CellMeta)
		}
		if f.at == none {
			if l.refuse(in.CellID, reason) {
				e.event(now, CellRefused, l.peer.ID, reason, 1)
			} else {
				l.omitted(now)
			}
			return
		}
	}
	e.merged++
	if f.cell == nil || in.Kind == Given {
		f.cell = e.state.cells.at(f.at)
	}
	if id.Kind.Counts() {
		e.mergeCount(now, l, m, f, in)
	} else {
		e.mergeRights(now, l, f, in)
	}
}

// mergeCount merges a count into a cell.
func (e *Engine) mergeCount(now time.Duration, l *link, m *Message, f located, in *Cell) {
	c := f.cell
	was := c.Value
	is := c.Kind.join(c.Value, in.Value)
	meta := e.state.meta(c)
	joined := meta.join(&in.CellMeta)
	more, less := joined != *meta, in.CellMeta.join(meta) != in.CellMeta
	if more {
		e.state.describe(c, &in.CellMeta)
		meta = e.state.meta(c)
	}
	if c.Kind == RegionSum && l.local && !e.roles.two && is == in.Value && (c.via != l.peer.ID || c.Rate != in.Rate) &&
		e.roles.cached(e.state.keys.at(c.key)) == l.peer.ID {
		c.via = l.peer.ID
		e.state.setRate(c, in.Rate)
	}
	if c.Kind == Others {
		c.via, c.received = l.peer.ID, now
		e.state.setRate(c, in.Rate)
		informed(e, now, l, c)
	}
	if is == was && !more {
		return
	}
	known := e.state.counted(c, e.self.ID, e.region)
	e.state.set(c, is)
	c.source, c.received = l.peer.ID, now
	if less {
		c.source = 0
	}
	if c.Incarnation == e.region {
		e.restoration.check(c.id(), now+e.cfg.settleTime())
		return
	}
	if c.Kind != Others {
		l.measure(e, m, f, was)
		if c.version == 0 || e.passesOn(c) {
			e.state.touch(f.at, now)
		}
	}
	if is != was {
		was, is = known, e.state.counted(c, e.self.ID, e.region)
		e.changes = append(e.changes, Change{})
		g := &e.changes[len(e.changes)-1]
		g.Key, g.Window, g.Span, g.at, g.cell = c.Key, c.Window, *meta, c.key, f.at
		// A sum of more hits may have fewer refunds.
		g.Gain, g.Less = sat.Add(is.P-min(was.P, is.P), was.N-min(was.N, is.N)), is.N-min(was.N, is.N)
	}
}

// passesOn reports whether a peer may need the new value of a received cell
// from this daemon. Otherwise the cell stays where it is among the changes, for
// a resync: that is what follows when others send or sum its key.
func (e *Engine) passesOn(c *cell) bool {
	k := e.roles.pair(e.state.keys.at(c.key))
	winner := k.aggregator
	switch {
	case e.roles.two && c.Kind == Daemon && c.Incarnation != e.restoration.lost && linkOf(e, c.Incarnation) != nil:
		return winner == e.self.ID || !k.has(e.self.ID)
	case winner == e.self.ID || c.Incarnation == e.restoration.lost:
		return true
	case c.Kind == Daemon && (c.Incarnation == c.source || linkOf(e, c.Incarnation) != nil): // its writer sends it to all
		return false
	}
	return winner == 0 || c.source != winner // which has it, and sends it to all
}
