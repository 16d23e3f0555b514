package gossip

import (
	"slices"
	"time"

	"github.com/georld/rld/internal/rendezvous"
)

// A link sends nothing while it has nothing to send: no cells, no
// acknowledgement that is due, and no heartbeat.

const (
	// regionalHeartbeat is the time between two messages of an idle link
	// within a region, fastestHeartbeat that across regions. In large regions
	// it is perDaemon and perRemoteDaemon for each daemon of the region, up to
	// slowestHeartbeat, so that a daemon sends 10 and 7 a second at most. Two
	// daemons of different regions that send each other no sums (sameRanks)
	// wait withoutSums times as long, and at least perIdlePeer for each daemon
	// of other regions, up to slowestIdle.
	regionalHeartbeat = 3 * time.Second
	fastestHeartbeat  = time.Second
	perDaemon         = 100 * time.Millisecond
	perRemoteDaemon   = 150 * time.Millisecond
	slowestHeartbeat  = 10 * time.Second
	withoutSums       = 3
	perIdlePeer       = 300 * time.Millisecond
	slowestIdle       = time.Minute
	// beatEarly is the time after a message without heartbeats, or half of the
	// time between two of them if that is less.
	beatEarly = time.Second

	// acknowledgeAfter is the longest time that a received cell waits for its
	// acknowledgement, and answerHot that of an expedited one within a region.
	// A message that is sent anyway has it once in answerEarly.
	acknowledgeAfter = time.Second
	answerEarly      = acknowledgeAfter * 3 / 4
	answerHot        = 250 * time.Millisecond
	// missedAnswers is the number of times that an answer may take as long as
	// it may wait before the peer is silent.
	missedAnswers = 3
)

// MaxHeartbeat returns the longest time between two messages of a link in a
// cluster of several daemons.
func (c Config) MaxHeartbeat(daemons int) time.Duration {
	c = c.WithDefaults()
	return max(slowestHeartbeat, idleBeat(daemons), c.Interval, c.WANInterval) + beatEarly
}

// idleBeat returns the least time between two messages of a link between two
// daemons that send each other no sums, with several daemons in other regions.
func idleBeat(daemons int) time.Duration {
	return min(time.Duration(daemons)*perIdlePeer, slowestIdle)
}

// heartbeat returns the time between two messages of an idle link between a
// daemon and one of several daemons of a region.
func (l *link) heartbeat(daemons int) time.Duration {
	least, per := fastestHeartbeat, perRemoteDaemon
	if l.local {
		least, per = regionalHeartbeat, perDaemon
	}
	return max(least, min(time.Duration(daemons)*per, slowestHeartbeat), l.interval())
}

// setBeats sets what depends on the daemons of each region, whether they are
// ready or not.
func setBeats(e *Engine, now time.Duration) {
	e.local = e.local[:0]
	regions := make([]members, len(e.roles.regions))
	for i := range regions {
		regions[i].grow(len(e.roles.regions[i].ids) + 1)
	}
	self := namingOf(e.self.Name)
	regions[0].add(e.self.ID, self)
	for _, l := range e.links {
		regions[l.region].add(l.peer.ID, l.naming)
		if l.local {
			e.local = append(e.local, l)
		}
	}
	paired := make([]bool, len(regions))
	for i := range regions {
		regions[i].rank()
		paired[i] = regions[0].sameRanks(&regions[i])
	}
	remote := len(e.links) - len(e.local)
	for _, l := range e.links {
		l.beat, l.peerBeat = l.heartbeat(len(regions[l.region].ids)), l.heartbeat(len(regions[0].ids))
		if paired[l.region] && !l.local {
			l.beat = max(fastestHeartbeat, l.interval())
			if l.ordinal != self.ordinal {
				l.beat = max(min(withoutSums*l.heartbeat(len(regions[0].ids)), slowestHeartbeat), idleBeat(remote), l.interval())
			}
			l.peerBeat = l.beat
		}
		// The shards of a daemon send their heartbeats together, and those to
		// different peers are spread.
		pair := rendezvous.Mix(rendezvous.Mix(self.name) + l.name)
		steps := uint64(l.beat / l.interval())
		l.phase = time.Duration(pair%max(1, steps)) * l.interval()
		if l.unused {
			l.due = l.upcoming(now)
			l.queue.fix(l)
		}
	}
}

// nextBeat returns when the next heartbeat is due: at a multiple of the time
// between two, so that the shards of a daemon send theirs together. Soon after
// another message there is none.
func (l *link) nextBeat() time.Duration {
	every := l.beat
	if l.echoed == 0 && !l.unused { // the round trip is not known yet
		every = max(min(every/3, regionalHeartbeat), fastestHeartbeat, l.interval())
	}
	at := (l.lastSent+longestBeat(every)+l.phase)/every*every - l.phase
	if l.marked && l.local { // it comes with the changes
		at = max(at, min(l.markedFor, l.lastSent+longestBeat(every)))
	}
	if l.unused && l.second {
		at += every
	}
	return at
}

// longestBeat returns the longest time between two messages of an idle link
// with some time between two heartbeats.
func longestBeat(every time.Duration) time.Duration { return every + min(every/2, beatEarly) }

// upcoming returns when a link has work after now.
func (l *link) upcoming(now time.Duration) time.Duration {
	at := min(l.nextBeat(), l.owedAt)
	if l.trailAt > now {
		at = min(at, l.trailAt)
	}
	if l.acked < l.sent {
		at = min(at, l.resendAt)
	}
	if l.behind {
		at = min(at, l.next(now))
	}
	if l.marked && l.markedFor > now {
		at = min(at, l.markedFor)
	} else if l.marked {
		at = min(at, l.next(now))
	}
	return at
}

// owe makes the link send a message at a time at the latest.
func (l *link) owe(at time.Duration) {
	l.owedAt = min(l.owedAt, at)
	l.due = min(l.due, at)
	l.queue.fix(l)
}

// expect notes that a message of the peer is expected by a time.
func (l *link) expect(by time.Duration) {
	if by < l.expected {
		l.expected = by
		l.queue.silentAt = min(l.queue.silentAt, l.silentAt())
	}
}

// silentAt returns when the peer becomes silent, unless a message arrives.
func (l *link) silentAt() time.Duration {
	if l.receivedAt < 0 {
		return never
	}
	return min(l.receivedAt+3*max(l.lag, l.slow, l.peerBeat), max(l.expected, l.receivedAt+3*l.lag))
}

// heard reports whether the peer is not silent at now.
func (l *link) heard(now time.Duration) bool { return l.receivedAt >= 0 && now <= l.silentAt() }

// mayBeGone reports whether the peer may have ended without the notice of
// membership: it is silent, or never answered.
func (l *link) mayBeGone() bool { return l.silent || l.echoed == 0 }

// arrived updates how long views last from the time of a complete message, sent
// at the peer's time.
func (l *link) arrived(now, sentAt time.Duration) {
	if l.receivedAt < 0 {
		return
	}
	gap := max(now-l.receivedAt, l.interval())
	if gap > longestBeat(l.peerBeat)+2*l.interval() {
		l.slow = max(l.slow, gap)
	} else {
		l.slow -= l.slow / 8
	}
	// A peer without changes sends nothing: only the delay counts.
	late := now - l.receivedAt - (sentAt - l.sentAt)
	gap = min(gap, l.interval()+max(0, late))
	l.lag = max(gap, l.lag+(gap-l.lag)/8)
}

// answer makes the link answer a message of the peer in time. known reports
// whether all versions before those of the message were received.
func (l *link) answer(now time.Duration, m *Message, known bool) {
	if !m.Complete { // the rest waits for an acknowledgement
		l.owe(now + l.shortest())
	}
	switch {
	case !known || m.Answers && m.Echo == 0 || l.unlisted():
		l.owe(now + l.shortest())
	case m.Hi > m.Lo && !m.Ready: // it starts or leaves
		l.owe(now + l.shortest())
	case m.Hi > m.Lo:
		l.owe(l.answerBy(now))
	}
}

// askRegion asks the peers of another region for an answer: those that are not
// silent when one of them becomes silent, since the region may be partitioned
// and their heartbeats may be rare, and the others when one of them responds.
func askRegion(e *Engine, now time.Duration, region int, silent bool) {
	for _, l := range e.links {
		if l.local || l.region != region || l.silent != silent || l.echoed == 0 {
			continue
		}
		l.wantsAnswer = true
		l.owe(now)
		if !silent {
			l.expect(now + max(0, l.rtt) + missedAnswers*l.shortest())
		}
	}
}

// answers reports whether the next message answers the peer: it acknowledges
// and echoes. Heartbeats do, and on a busy link a message in place of each.
func (l *link) answers(now time.Duration) bool {
	return l.owedAt <= now || l.nextBeat() <= now || l.echoed == 0 || len(l.refused)+len(l.repair) > 0 ||
		now-l.answeredAt >= l.beat || l.owedAt != never && now-l.answeredAt >= answerEarly
}

// unlisted reports whether there are refused cells or buckets to repair that no
// message listed yet.
func (l *link) unlisted() bool {
	return slices.ContainsFunc(l.refused, func(r listed[Refusal]) bool { return r.nonce == 0 }) ||
		len(l.repair) > 0 && l.repair[len(l.repair)-1].nonce == 0
}
