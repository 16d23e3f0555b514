package gossip

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// Change is what a message added to the counts of a key's label.
type Change struct {
	Key    crdt.Key
	Window int64
	Span   CellMeta
	Gain   uint64 // hits more than were known
	// Less is how many refunds more than were known.
	Less uint64
	// Transfer is how many rights more From gave us than were known.
	Transfer uint64
	From     crdt.Incarnation
}

// ErrMisplaced is returned for a message to another incarnation or shard. A
// peer that has not heard of a restart sends them.
var ErrMisplaced = errors.New("gossip: message for another incarnation or shard")

// UnknownSenderError is returned for a message of no member.
type UnknownSenderError struct{ Sender crdt.Incarnation }

// Error names the sender.
func (e *UnknownSenderError) Error() string {
	return fmt.Sprintf("gossip: message of %v, which is no member", e.Sender)
}

// ShardsError is returned for a message of a peer that splits its keys
// otherwise.
type ShardsError struct{ Theirs, Ours int }

// Error names both numbers.
func (e *ShardsError) Error() string {
	return fmt.Sprintf("gossip: peer splits its keys over %d shards and not %d", e.Theirs, e.Ours)
}

// Receive takes in a message. wall is the label clock in Unix milliseconds,
// ahead how far in milliseconds a peer's clock may be before it. The changes
// are good until the next call. The errors are ErrMisplaced, an
// *UnknownSenderError and a *ShardsError; then nothing was taken.
func (e *Engine) Receive(now time.Duration, wall, ahead int64, rules uint64, m *Message) ([]Change, error) {
	if m.Shards != e.shards {
		return nil, &ShardsError{m.Shards, e.shards}
	}
	if m.To != e.self.ID || m.Shard != e.shard || m.From == e.self.ID {
		return nil, ErrMisplaced
	}
	l := e.link(m.From)
	if l == nil {
		return nil, &UnknownSenderError{m.From}
	}
	newer := m.Nonce > l.nonce
	if newer {
		e.header(now, l, m, rules)
		e.acknowledged(now, l, m)
	}
	e.changes = e.changes[:0]
	all := true
	floor := wall - e.cfg.Grace.Milliseconds()
	for i := range m.Cells {
		all = e.merge(now, l, m, i, floor, wall+ahead) && all
	}
	if all && m.Lo <= l.contig && m.Hi > l.contig {
		l.contig = m.Hi
	}
	if newer && m.Complete && m.Hi <= l.contig {
		e.complete(now, l, m)
	}
	return e.changes, nil
}

// header takes in what does not depend on the cells.
func (e *Engine) header(now time.Duration, l *link, m *Message, rules uint64) {
	l.nonce, l.nonceAt = m.Nonce, now
	l.measure(now, m)
	l.refused, l.repair = settle(l.refused, m.Echo), settle(l.repair, m.Echo)
	if differs := m.Rules != rules; differs != l.differs {
		l.differs = differs
		kind := RulesAgree
		if differs {
			kind = RulesDiverged
		}
		e.event(now, kind, l.peer.ID, 0, 0)
	}
	l.rules = m.Rules
	if l.ready != m.Ready && (m.Ready || !e.starting(now, l)) {
		l.ready = m.Ready
		e.arrange(now)
	}
}

// starting reports whether a peer may just have started: shards that are ready
// share frames, and so one header, with shards that are not yet. A frame without
// those says that it takes its share, and the next one with them takes nothing back.
func (e *Engine) starting(now time.Duration, l *link) bool {
	return now-l.joined < 2*e.cfg.ReadyWithin
}

// acknowledged takes in what the peer has of ours. Less than it had before
// means that it forgot us: it is told everything again.
func (e *Engine) acknowledged(now time.Duration, l *link, m *Message) {
	switch {
	case m.Ack > l.sent && m.Ack > l.base+e.state.version:
		return // of nothing that was ever sent
	case m.Ack < l.acked:
		l.acked = m.Ack
		l.tell(e.state.version)
		l.sweepTo, l.sweeping = e.state.version, true
		e.event(now, ResyncStarted, l.peer.ID, 0, 0)
	case m.Ack > l.acked:
		l.acked, l.inflight, l.backoff = m.Ack, 0, 0
		l.sent = max(l.sent, l.acked)
		l.resendAt = now + e.patience(l)
		l.openNonce, l.openHi = l.lastNonce, l.sent
	case m.Echo >= l.openNonce && m.Ack < l.openHi && l.acked < l.sent:
		e.rewind(now, l)
		l.resendAt = now + e.patience(l)
	}
	for _, r := range m.Refused[:min(len(m.Refused), maxRefused)] { // nobody lists more
		if e.again(now, r.CellID) {
			e.event(now, RefusalReceived, l.peer.ID, r.Reason, 1)
		}
	}
	e.repair(now, l, m.Repair)
}

// complete takes in that the peer had nothing more to say: no news is news.
func (e *Engine) complete(now time.Duration, l *link, m *Message) {
	l.took(now, m, e.interval(l))
	if l.silent {
		l.silent = false
		e.event(now, PeerResponding, l.peer.ID, 0, 0)
	}
	if !l.whole {
		l.whole = true
		e.sync(now)
	}
	e.settleRates(now, l)
	if len(m.Digests) > 0 && len(l.repair) == 0 && m.Hi == l.contig {
		for _, b := range e.state.differing(m.From, m.Digests) {
			l.repair = append(l.repair, told[uint16]{item: b})
		}
	}
}

// merge takes a cell in. It returns false only when it can neither be taken nor
// listed as refused, so that the message must come again.
func (e *Engine) merge(now time.Duration, l *link, m *Message, at int, floor, newest int64) bool {
	in := &m.Cells[at]
	if !e.plausible(l, in) {
		e.event(now, CellForged, l.peer.ID, 0, 1)
		return true // taken and dropped: it would never be right
	}
	if in.End(in.Window) <= floor {
		e.event(now, CellStale, l.peer.ID, 0, 1)
		return true
	}
	id := in.CellID
	if in.Kind == Given {
		id.Kind, id.Incarnation = Received, l.peer.ID
	}
	i := e.state.find(id)
	if i == none {
		if sat.AddInt(newest, in.WindowLength) < in.Window {
			return e.refuse(now, l, in.CellID, TooFarAhead)
		}
		if i = e.state.add(id, in.CellMeta); i == none {
			return e.refuse(now, l, in.CellID, NoRoom)
		}
	}
	if id.Kind.Counts() {
		e.take(now, l, m, i, in)
	} else {
		e.takeRights(now, l, i, in)
	}
	return true
}

// plausible reports whether the peer may tell a cell: nobody writes our slot,
// and another region tells sums only, its own or what it has of ours.
func (e *Engine) plausible(l *link, in *Cell) bool {
	if in.WindowLength < 1 || in.Carry < 0 || in.Value.N > in.Value.P || in.Value.P > crdt.Max {
		return false
	}
	switch in.Kind {
	case Daemon:
		return l.local && in.Incarnation != e.self.ID
	case Given:
		return in.Incarnation == e.self.ID && in.Value.N == 0
	case Transferred:
		return l.local && in.Incarnation == l.peer.ID
	case Received:
		return false
	}
	return l.local && in.Incarnation != e.region || in.Incarnation == l.incarnation || in.Incarnation == e.region
}

// take joins a cell into the one at i.
func (e *Engine) take(now time.Duration, l *link, m *Message, i int32, in *Cell) {
	e.merged++
	c := &e.state.cells[i]
	was := c.Value
	is := was.Join(in.Value)
	if c.Kind == RegionSum {
		is = crdt.PN(crdt.Sum(was).Join(crdt.Sum(in.Value)))
	}
	longer := in.Carry > c.Carry
	if longer {
		c.Carry = in.Carry
	}
	if c.Kind == RegionSum && l.local && is == in.Value && e.teams[0].aggregator(c.Key) == l.peer.ID {
		c.via = l.peer.ID
		e.state.setRate(i, in.Rate)
	}
	if is == was && !longer {
		return
	}
	e.state.set(i, is)
	c.from, c.told = l.peer.ID, now
	if c.Incarnation == e.region {
		e.remember(now, i)
		return
	}
	e.measure(l, m, i, was)
	e.state.touch(i, now)
	if m.Expedited {
		e.expediteOn(l, i)
	}
	if is != was {
		e.changes = append(e.changes, Change{
			Key: c.Key, Window: c.Window, Span: c.CellMeta,
			// A sum of more hits may come with fewer refunds.
			Gain: crdt.AddSat(is.P-min(was.P, is.P), was.N-min(was.N, is.N)), Less: is.N - min(was.N, is.N),
		})
	}
}

// expediteOn passes on at once what came urgently and is ours to pass on.
func (e *Engine) expediteOn(from *link, i int32) {
	c := &e.state.cells[i]
	if !e.mine(c.Key) {
		return
	}
	for _, l := range e.links {
		switch {
		case from.local && !l.local && !c.Regional && e.teams[l.team].aggregator(c.Key) == l.peer.ID:
			e.expedite(l, i)
		case !from.local && l.local:
			e.expedite(l, i)
		}
	}
}

// measure finds out how fast a cell grows, where it came from its writer: only
// who may rate a cell is whom it is heard by (via), and rates fall with what
// that one says. Another's clock is another's, so a new way starts anew.
func (e *Engine) measure(l *link, m *Message, i int32, was crdt.PN) {
	c := &e.state.cells[i]
	firstHand := c.Kind == Daemon && c.Incarnation == l.peer.ID || c.Kind == RegionSum && !l.local
	if !firstHand {
		if c.via != l.peer.ID && e.link(c.via) == nil {
			c.via = l.peer.ID
			e.state.setRate(i, 0)
		}
		return
	}
	at := time.Duration(m.Nonce) * time.Microsecond
	if c.via != l.peer.ID && was.P > 0 {
		c.via, c.growth = l.peer.ID, growth{refP: c.Value.P, ref: max(at, 1)}
		e.state.setRate(i, 0)
		return
	}
	c.via = l.peer.ID
	start := at - time.Duration(max(0, m.Stamp.Millis()-c.Window))*time.Millisecond
	if l.heardAt >= 0 {
		start = max(start, l.heard)
	}
	c.observe(c.Value.P, start, at, e.interval(l))
	e.rate(l, i, c.slope)
}

// rate changes by how much a cell is extrapolated and remembers it with its
// link.
func (e *Engine) rate(l *link, i int32, slope uint32) {
	c := &e.state.cells[i]
	if c.Rate == 0 && slope > 0 {
		l.rated = append(l.rated, i)
		if len(l.rated) > len(e.state.cells) { // some are listed twice
			slices.Sort(l.rated)
			l.rated = slices.Compact(l.rated)
		}
	}
	e.state.setRate(i, slope)
}

// settleRates lets the slopes fall of cells that a complete message did not
// mention: nothing was added to them. What others are told of such a slope is
// told again.
func (e *Engine) settleRates(now time.Duration, l *link) {
	kept := l.rated[:0]
	for _, i := range l.rated {
		c := &e.state.cells[i]
		if !c.used || c.via != l.peer.ID || c.Rate == 0 {
			continue
		}
		was := c.Rate
		c.observe(c.Value.P, c.ref, l.heard, e.interval(l))
		e.state.setRate(i, c.slope)
		if c.Rate == 0 && was != 0 && c.Kind == RegionSum {
			e.state.touch(i, now)
		}
		if c.Rate > 0 {
			kept = append(kept, i)
		}
	}
	l.rated = kept
}

// unrate ends the extrapolation of what a peer told, and says so to those who
// were told of its slopes.
func (e *Engine) unrate(now time.Duration, l *link) {
	for _, i := range l.rated {
		if c := &e.state.cells[i]; c.used && c.via == l.peer.ID && c.Rate > 0 {
			e.state.setRate(i, 0)
			if c.Kind == RegionSum {
				e.state.touch(i, now)
			}
		}
	}
}
