package gossip

import (
	"math"
	"time"

	"github.com/georld/rld/hlc"
)

// Due returns when the next message is due, never for none.
func (e *Engine) Due() time.Duration {
	return min(e.queue.first(), dispatchAt(e))
}

const never = time.Duration(math.MaxInt64)

// Messages returns the messages that are due at now. They are valid until the
// next call. stamp is the daemon's hybrid logical clock, rules the hash of its
// rules.
func (e *Engine) Messages(now time.Duration, stamp hlc.Timestamp, rules uint64) []Message {
	clear(e.out) // it would keep the cells of a resync
	e.expedited, e.out, e.room = false, e.out[:0], e.room[:0]
	e.remote.version = 0
	e.ages.known, e.ages.others = false, e.ages.others[:0]
	if e.unassigned && now >= reassignAt(e) {
		e.reassign(now)
	}
	called(e, now)
	dispatch(e, now)
	e.dueLinks = e.queue.due(now, e.dueLinks[:0])
	for _, l := range e.dueLinks {
		if sends(e, now, l) {
			e.out = append(e.out, e.message(now, l, stamp, rules))
		} else {
			l.due = l.upcoming(now)
		}
		e.queue.fix(l)
	}
	return e.out
}

// ages are the ages of views that all messages of a call state: of the own
// region, and of the others.
type ages struct {
	known  bool
	own    time.Duration
	ownAt  time.Duration // when own was measured
	others []Staleness
}

// ownAge returns the greatest staleness of the view of the own region. With
// manyLinks peers or more it looks at them once per Config.MinGap, and adds the
// time since.
func ownAge(e *Engine, now time.Duration) time.Duration {
	a := &e.ages
	if len(e.links) < manyLinks || a.ownAt == 0 || now-a.ownAt > e.cfg.MinGap {
		a.own, a.ownAt = e.local.ownAge(now), now
	}
	return a.own + now - a.ownAt
}

// cellRoom is memory for the cells of the messages of one call.
type cellRoom []Cell

// usualCells is the number of cells that most calls send.
const usualCells = 256

// take returns empty memory for n cells.
func (r *cellRoom) take(n int) []Cell {
	if n == 0 {
		return nil
	}
	if *r == nil {
		*r = make(cellRoom, 0, usualCells)
	}
	at := len(*r)
	if at+n > cap(*r) {
		return make([]Cell, 0, n)
	}
	*r = (*r)[:at+n]
	return (*r)[at : at : at+n]
}

// maxInflight bounds the cells on their way to a peer that acknowledges
// nothing, in frames.
const maxInflight = 8

// message returns the message of a link: all changes. If these are too many for
// it, they take turns with the expedited cells.
func (e *Engine) message(now time.Duration, l *link, stamp hlc.Timestamp, rules uint64) Message {
	if l.timeout(now) {
		e.event(now, Resent, l.peer.ID, 0, 0)
	}
	m := Message{From: e.self.ID, To: l.peer.ID, Shard: e.shard, Shards: e.shards}
	m.Header = Header{Ready: e.ready(), Nonce: nonceOf(now)}
	if l.announcedRules.next(now, int64(rules), 0, m.Nonce) {
		m.Rules = rules
	}
	if l.announcedClock.next(now, stamp.Millis()-int64(m.Nonce/noncesPerMilli), clockTolerance, m.Nonce) {
		m.Stamp = stamp
	}
	if l.nonce != 0 {
		m.Echo, m.Held = l.nonce, nonceOf(now-l.nonceAt)
	}
	if l.answers(now) {
		m.Answers, m.Ack, l.answeredAt, l.owedAt = true, l.acknowledges(now), now, never
	}
	if l.wantsAnswer {
		m.Echo, m.Held, l.wantsAnswer = 0, 0, false
	}
	if m.Echo != 0 && l.echoNonce == 0 {
		l.echoNonce = m.Nonce
	}
	m.Refused = list(l.refused, m.Nonce)
	m.Repair = list(l.repair, m.Nonce)
	m.Lo, m.Hi = l.sent, l.sent
	l.lastNonce, l.lastSent, l.unused = m.Nonce, now, false
	m.RightsMessages, l.rights = l.rights, nil
	m.Loads = l.takeLoads()
	if l.greeting && l.local && l.echoed > 0 && e.roles.two {
		l.greet(&e.state, &e.roles, e.region)
	}
	if len(l.expedited) > 0 && !l.fits(e.state.version) && !(l.due <= now && l.express) {
		e.express(now, l, &m)
	} else {
		e.changed(now, l, &m)
	}
	return m
}

// fits reports whether a message can hold all changes up to a version.
func (l *link) fits(version uint64) bool {
	if !l.behind {
		return len(l.news) <= l.room()
	}
	return version-min(l.position(), version) <= uint64(l.room())
}

// room returns how many cells the next message may hold.
func (l *link) room() int {
	cells := l.cfg.FrameCells
	return max(0, min(cells, maxInflight*cells-l.inflight, (l.cfg.FrameBytes+cellBytes-1)/cellBytes))
}

// express puts the expedited cells into a message that covers no versions. They
// are sent again with all others, so a lost message only delays them.
func (e *Engine) express(now time.Duration, l *link, m *Message) {
	n, picked, scope := 0, e.picked[:0], e.scope(l)
	for _, i := range l.expedited {
		if len(picked) == e.cfg.FrameCells {
			break
		}
		n++
		if c := e.state.cells.at(i); c.used && c.version != 0 && scope.includes(c) {
			picked = append(picked, scope.pick(i, c))
		}
	}
	picked = scope.pickInforms(picked)
	e.picked = picked
	scope.put(m, e.room.take(len(picked)), picked)
	l.expedited, l.express = append(l.expedited[:0], l.expedited[n:]...), true
	l.due = max(l.due, now+e.cfg.MinGap)
}

// changed puts all changes into a message that were not sent to the peer yet.
func (e *Engine) changed(now time.Duration, l *link, m *Message) {
	settled := l.acked == l.sent
	compare := l.local && !e.roles.two && now/e.cfg.DigestEvery > l.digestAt/e.cfg.DigestEvery
	if compare {
		e.state.releaseDigested(now)
		dispatch(e, now)
	}
	e.fill(now, l, m)
	if settled {
		l.openNonce, l.openHi = m.Nonce, m.Hi
	}
	if m.Complete && l.completeNonce == 0 {
		l.completeNonce = m.Nonce
	}
	if m.Complete && !(l.local && e.roles.two) { // within it, the aggregator knows
		addViews(e, now, l, m)
	}
	if compare && m.Complete {
		l.digestAt = now
		m.Digests = e.state.digestsOf(e.self.ID)
	}
	switch {
	case !m.Complete:
		l.mayLack(m.Lo)
	case l.lackTo == 0:
		l.lackTo = max(1, m.Hi)
	}
	l.sent, l.express = m.Hi, false
	l.settleLack()
	if m.Hi > m.Lo {
		l.sentMetas.sent(m)
		l.sentKeys.shorten(m, l.acked, l.reached)
		within := acknowledgeAfter
		if !m.Ready { // the peer answers a daemon that starts or leaves at once
			within = l.interval()
		}
		l.expect(now + max(0, l.rtt) + missedAnswers*within)
	}
	if l.acked < l.sent && l.resendAt == 0 {
		l.resendAt = now + l.patience()
	}
	l.reached = max(l.reached, l.sent)
	if l.trailAt <= now {
		l.trailAt = never
	}
	l.due = l.upcoming(now)
	if !m.Complete && l.inflight < maxInflight*e.cfg.FrameCells {
		l.due = min(l.due, now+e.cfg.MinGap)
	}
}

// addViews adds the ages of the own views to a message: to all complete ones,
// since an estimate follows a slope for as long as a view is old.
func addViews(e *Engine, now time.Duration, l *link, m *Message) {
	if !e.ages.known {
		e.ages.known = true
		if !e.roles.two {
			e.ages.others = e.links.staleness(now, e.ages.others)
		}
	}
	m.HasViews, m.Own = true, ownAge(e, now)
	if l.local {
		m.Staleness = e.ages.others
	}
}

// fill puts the changed cells into a message and sets the versions it covers.
func (e *Engine) fill(now time.Duration, l *link, m *Message) {
	hi := max(l.position(), l.walked)
	room := l.room()
	picked, scope := e.picked[:0], e.scope(l)
	i := none
	switch {
	case l.behind || len(l.news) > room:
		i = e.state.after(hi, l.cursor)
	default:
		picked = scope.pickNews(picked)
	}
	if i != none && !l.local && l.resyncTo <= hi && room > 0 {
		picked = e.remote.pick(&scope, i, room, picked)
		if i != none {
			i, l.cursor = none, e.state.changes.last
		}
		if len(picked) == room {
			l.cursor = picked[room-1].cell
			hi, i = e.state.cells.at(l.cursor).version, e.state.cells.at(l.cursor).change.next
		}
	}
	for i != none && len(picked) < room {
		c := e.state.cells.at(i)
		if scope.includes(c) {
			picked = append(picked, scope.pick(i, c))
		}
		hi, l.cursor = c.version, i
		i = c.change.next
	}
	if l.behind && len(picked) > 0 {
		l.trail(now) // the peer may extrapolate them
	}
	l.inflight += len(picked)
	changes, nothing := len(picked), false
	picked = scope.pickInforms(picked)
	e.picked = picked
	scope.put(m, e.room.take(len(picked)), picked)
	m.Complete = i == none
	if m.Complete {
		hi, l.expedited = e.state.version, l.expedited[:0]
		l.noChanges()
		nothing = changes == 0
		if l.resyncing && (l.acked >= l.base+l.resyncTo || nothing && l.acked == l.sent) {
			l.resyncing = false
			e.event(now, ResyncDone, l.peer.ID, 0, 0)
		}
	} else {
		l.behind, l.walked, l.news = true, 0, nil
		m.Unsent = max(0, now-e.state.unsents.at(i).since)
	}
	if !nothing { // else there is nothing to acknowledge
		m.Hi = max(l.base+hi, m.Lo)
	}
	if w := e.state.delays.first; w != none {
		m.Unsent = max(m.Unsent, now-e.state.unsents.at(w).since)
	}
}

// cellBytes is the approximate size of a cell without refunds in a frame.
const cellBytes = 24
