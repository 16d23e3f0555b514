package gossip

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

// Most changes are for few peers. So the engine visits each change once and
// notes it at the links of its receivers: links without changes need not look
// for some.

// dispatched is how far the changes were noted at links.
type dispatched struct {
	version uint64        // of the state
	at      time.Duration // when later changes are due, never for none
	prompt  time.Duration // by when the caller sends those that are prompt, likewise
	latest  time.Duration // the latest time that the engine was called at
}

// maxNews bounds the changes that a link notes. With more, it visits all.
const maxNews = 256

// dispatchAt returns when the changes that were not noted at links are due: at
// the next multiple of an interval, or earlier with prompt ones.
func dispatchAt(e *Engine) time.Duration {
	d := &e.dispatched
	if d.version == e.state.version {
		return never
	}
	if d.at == never {
		d.at = never
		for _, interval := range []time.Duration{e.cfg.Interval, e.cfg.WANInterval} {
			interval = max(interval, min(e.cfg.Quiet, maxQuietInterval))
			d.at = min(d.at, (d.latest/interval+1)*interval)
		}
	}
	return min(d.at, d.prompt)
}

// called notes the time of a call. Changes that are not noted yet are due by
// that of the call that made them.
func called(e *Engine, now time.Duration) {
	dispatchAt(e)
	e.dispatched.latest = now
}

// dispatch notes all new changes at the links of their receivers.
func dispatch(e *Engine, now time.Duration) {
	d := &e.dispatched
	if d.prompt <= now {
		d.prompt = never
	}
	if d.version == e.state.version {
		return
	}
	base := min(now, d.at)
	i := e.state.after(d.version, none)
	d.version, d.at = e.state.version, never
	for i != none {
		c := e.state.cells.at(i)
		c.held = c.Kind == Daemon && !e.leaving && e.state.withheld(c)
		if c.Kind == Daemon && !c.held && e.roles.cached(e.state.keys.at(c.key)) == e.self.ID {
			letGo(&e.state, c)
		}
		receivers(e, c, func(l *link) {
			due := l.atMultiple(base, l.interval())
			switch s := e.scope(l); {
			case l.local && !s.includes(c):
				return
			case c.small && !e.leaving && l.local && c.Kind == Daemon && c.Incarnation == e.self.ID:
				due = max(due, l.smallDue(base))
			case !l.local:
				due = min(due, l.promptDue(e, i))
			}
			l.note(due, i, c.version)
		})
		i = c.change.next
	}
}

// NearEvery is how long the sums of regions wait that other ones receive, of
// keys near their limits, if Config.MinGap is not longer. A delay and its
// jitter are on top of it: a sum should arrive in a delay and 100 ms.
const NearEvery = 50 * time.Millisecond

// promptly returns from when on a prompt sum is due that is made now. Shards
// send those of NearEvery together, and so the sum waits for as long on
// average.
func promptly(e *Engine, now time.Duration) time.Duration {
	if e.shards > 1 {
		return now + NearEvery/2
	}
	return now + max(NearEvery, e.cfg.MinGap)
}

// promptDue returns when a change is due in another region that is near a limit
// or in a prompt sum, never for others.
func (l *link) promptDue(e *Engine, i int32) time.Duration {
	c := e.state.cells.at(i)
	at, k := never, e.state.keys.at(c.key)
	if k.near == c.Window {
		at = promptly(e, e.state.unsents.at(i).since)
	}
	if k.promptAt != 0 && k.sumOf == c.Window {
		at = min(at, k.promptAt)
	}
	if at != never && l.sharded {
		return l.atMultiple(at, max(NearEvery, e.cfg.MinGap))
	}
	return at
}

// smallEvery is the time between two messages of a writer that only have
// increments that are so small that no decision depends on them: see small.
const smallEvery = 2 * time.Second

// smallDue returns when a small increment of about now is due: smallEvery after
// the latest message. So two daemons that have increments for each other take
// turns, and each message also acknowledges the one before it. After a longer
// time without messages it is the next multiple. So it is with several shards:
// they send together.
func (l *link) smallDue(now time.Duration) time.Duration {
	if due := l.lastSent + smallEvery; due > now && !l.sharded {
		return due
	}
	return l.atMultiple(now, smallEvery)
}

// answerBy returns by when a cell that is received now is acknowledged. Shards
// answer at multiples of acknowledgeAfter, together and with what they send.
func (l *link) answerBy(now time.Duration) time.Duration {
	at := now + acknowledgeAfter
	if l.sharded {
		at = (at+l.phase)/acknowledgeAfter*acknowledgeAfter - l.phase
	}
	return at
}

// atMultiple returns the next multiple of a wait, from now on. Those that are
// longer than an interval are spread over the links.
func (l *link) atMultiple(now, wait time.Duration) time.Duration {
	if wait == l.interval() {
		return (now + wait - 1) / wait * wait
	}
	return (now+l.phase+wait-1)/wait*wait - l.phase
}

// note notes a change for the peer, which is due at a time.
func (l *link) note(due time.Duration, i int32, version uint64) {
	if !l.marked && !l.behind {
		l.walked, l.news = version-1, l.news[:0]
	}
	if !l.marked || due < l.markedFor {
		l.noteBy(due)
	}
	if !l.behind && !slices.Contains(l.news, i) {
		if len(l.news) == maxNews {
			l.behind, l.news = true, nil
			return
		}
		l.news = append(l.news, i)
	}
}

// noteBy makes the changes that are noted for the peer due at a time.
func (l *link) noteBy(due time.Duration) {
	l.marked, l.markedFor = true, due
	l.due = min(l.due, due)
	l.queue.fix(l)
}

// receivers visits the links whose peers may receive a change. A resync does
// not need that: it has all cells.
func receivers(e *Engine, c *cell, visit func(l *link)) {
	find := func(id crdt.Incarnation) {
		if l := linkOf(e, id); l != nil {
			visit(l)
		}
	}
	if c.Kind == Given {
		find(c.Incarnation)
		return
	}
	switch p := e.roles.pair(e.state.keys.at(c.key)); {
	case c.Kind == Others, c.Kind == Received:
		return
	case c.Kind == Transferred || !e.roles.two:
		for _, l := range e.local {
			visit(l)
		}
	case c.Kind == RegionSum:
		find(p.aggregator)
	default:
		find(p.aggregator)
		find(p.successor)
	}
	s := e.scope(nil)
	if c.Kind == Transferred || s.held(c) || !s.mayLeave(c) {
		return
	}
	for r := range e.roles.regions[1:] {
		m := &e.roles.regions[1+r]
		if c.Kind == Daemon || m.incarnation == c.Incarnation {
			find(e.roles.winner(1+r, e.state.keys.at(c.key)))
		}
	}
}

// sends reports whether a message to a peer is due.
func sends(e *Engine, now time.Duration, l *link) bool {
	switch {
	case l.pending(), l.informsBy <= now, l.owedAt <= now, l.nextBeat() <= now:
		return true
	case l.due > now:
		return false
	case l.acked < l.sent && l.resendAt <= now:
		return true
	case l.behind:
		return l.room() > 0 && !caughtUp(e, now, l)
	case !l.marked || l.markedFor > now:
		return l.trailAt <= now
	}
	s := e.scope(l)
	l.news = slices.DeleteFunc(l.news, func(i int32) bool { return !s.isNews(i) })
	if l.marked = len(l.news) > 0; !l.marked {
		l.walked, l.markedFor = 0, 0
	}
	return l.marked || l.trailAt <= now
}

// caughtUp ends a walk over the changes that has no cell for the peer, as most
// resyncs of a large region: the peer needs no message about it. It reports
// false for a peer that needs one, or has received no complete message yet.
func caughtUp(e *Engine, now time.Duration, l *link) bool {
	if !l.unused && (l.completeNonce == 0 || l.echoed < l.completeNonce) || l.acked < l.sent || l.trailAt != never || l.local && !e.roles.two {
		return false
	}
	s, from := e.scope(l), max(l.position(), l.walked)
	i := e.state.after(from, l.cursor)
	switch {
	case !l.local && l.resyncTo <= from:
		if e.picked = e.remote.pick(&s, i, 1, e.picked[:0]); len(e.picked) > 0 {
			return false
		}
	default:
		for ; i != none; i = e.state.cells.at(i).change.next {
			if s.includes(e.state.cells.at(i)) {
				return false
			}
		}
	}
	l.noChanges()
	l.lackTo = max(1, l.sent)
	l.settleLack()
	if l.resyncing {
		l.resyncing = false
		e.event(now, ResyncDone, l.peer.ID, 0, 0)
	}
	return true
}

// noChanges notes that the peer was sent all changes.
func (l *link) noChanges() {
	l.marked, l.behind, l.walked, l.news, l.markedFor = false, false, 0, l.news[:0], 0
}

// isNews reports whether the peer receives a cell that was noted for it.
func (s *scope) isNews(i int32) bool {
	c := s.state.cells.at(i)
	return c.used && c.version > s.to.walked && s.includes(c)
}

// pickNews picks the cells that were noted for the peer.
func (s *scope) pickNews(picked []pick) []pick {
	for _, i := range s.to.news {
		if s.isNews(i) {
			picked = append(picked, s.pick(i, s.state.cells.at(i)))
		}
	}
	return picked
}

// settled returns the version up to which the peer has everything: changes that
// are not for it need no acknowledgement.
func (l *link) settled(d *dispatched) uint64 {
	switch {
	case l.acked < l.sent:
		return l.acked
	case l.marked || l.behind:
		return max(l.acked, l.base+max(l.position(), l.walked))
	}
	return max(l.acked, l.base+d.version)
}

// settleDue puts off the next visit of a link whose changes are all
// acknowledged.
func (l *link) settleDue() {
	if l.acked == l.sent && !l.marked && !l.behind {
		l.due = min(l.nextBeat(), l.owedAt, l.trailAt)
		l.queue.fix(l)
	}
}

// queue is a heap of the links of an engine by the time at which each has work
// next. A link without work costs nothing. A node has four children.
type queue struct {
	heap     []queuedLink
	silentAt time.Duration // no peer becomes silent before
}

// queuedLink is a link with its time: comparisons do not read the links, which
// are far apart in memory.
type queuedLink struct {
	at   time.Duration
	link *link
}

// fix puts a link where it belongs after its time may have changed. It adds a
// link that is not in the queue.
func (q *queue) fix(l *link) {
	at := l.dueAt()
	if l.queued == 0 {
		q.heap = append(q.heap, queuedLink{})
		q.up(len(q.heap)-1, queuedLink{at, l})
		return
	}
	switch i := l.queued - 1; {
	case at < q.heap[i].at:
		q.up(i, queuedLink{at, l})
	case at > q.heap[i].at:
		q.down(i, queuedLink{at, l})
	}
}

// remove removes a link.
func (q *queue) remove(l *link) {
	if l.queued == 0 {
		return
	}
	i, end := l.queued-1, len(q.heap)-1
	last := q.heap[end]
	q.heap[end], q.heap = queuedLink{}, q.heap[:end]
	l.queued = 0
	switch {
	case i == end:
	case i > 0 && last.at < q.heap[(i-1)/4].at:
		q.up(i, last)
	default:
		q.down(i, last)
	}
}

// up puts a link at place i or nearer to the first one.
func (q *queue) up(i int, e queuedLink) {
	for i > 0 && e.at < q.heap[(i-1)/4].at {
		q.put(i, q.heap[(i-1)/4])
		i = (i - 1) / 4
	}
	q.put(i, e)
}

// down puts a link at place i or farther from the first one.
func (q *queue) down(i int, e queuedLink) {
	for 4*i+1 < len(q.heap) {
		least := 4*i + 1
		for c := least + 1; c < min(4*i+5, len(q.heap)); c++ {
			if q.heap[c].at < q.heap[least].at {
				least = c
			}
		}
		if q.heap[least].at >= e.at {
			break
		}
		q.put(i, q.heap[least])
		i = least
	}
	q.put(i, e)
}

func (q *queue) put(i int, e queuedLink) { q.heap[i], e.link.queued = e, i+1 }

// first returns when a link has work first, never without links.
func (q *queue) first() time.Duration {
	if len(q.heap) == 0 {
		return never
	}
	return q.heap[0].at
}

// due appends the links that have work at now, by peer.
func (q *queue) due(now time.Duration, out []*link) []*link {
	out = q.collect(0, now, out)
	slices.SortFunc(out, func(a, b *link) int { return cmp.Compare(a.peer.ID, b.peer.ID) })
	return out
}

// collect appends those of place i and of the places below.
func (q *queue) collect(i int, now time.Duration, out []*link) []*link {
	if i >= len(q.heap) || q.heap[i].at > now {
		return out
	}
	out = append(out, q.heap[i].link)
	for c := 4*i + 1; c < min(4*i+5, len(q.heap)); c++ {
		out = q.collect(c, now, out)
	}
	return out
}
