package gossip

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

// link is the connection to one peer. Versions in messages to a peer are those
// of the state plus base. A resync starts a new base, so these versions only
// grow.
type link struct {
	cfg         *Config
	peer        Peer
	local       bool // a regional peer
	sharded     bool // daemons have several shards
	incarnation crdt.Incarnation
	region      int // place of its region in roles
	naming

	// Sent to the peer. Invariant: acked <= sent.
	base     uint64
	acked    uint64 // everything up to here was received
	sent     uint64 // everything up to here was sent
	reached  uint64 // the greatest that sent ever was: it may be acknowledged yet
	cursor   int32  // the cell of version sent, a hint
	resyncTo uint64 // versions of the state up to here are sent of all incarnations
	inflight int    // cells sent since acked changed
	// The peer may lack changes after lackFrom, of cells that changed again
	// before they were sent, until it acknowledges lackTo, 0 for unknown yet.
	lackFrom, lackTo uint64
	resendAt         time.Duration
	// The oldest message that is not acknowledged, or the latest one after
	// some of them were: an echo of it without its acknowledgement is a loss.
	openNonce, openHi, lastNonce uint64
	completeNonce                uint64 // of the first complete message, 0 before
	echoNonce                    uint64 // of the first message with an echo, 0 before
	backoff                      int
	lastSent                     time.Duration
	due                          time.Duration // when there may be anything to send next
	owedAt                       time.Duration // when an answer is due, never for none
	answeredAt                   time.Duration
	wantsAnswer                  bool // the next message echoes nothing, which the peer answers at once
	queue                        *queue
	queued                       int             // place in the queue plus one, 0 outside
	expedited                    []int32         // cells to send without waiting
	rights                       []RightsMessage // likewise, once
	loads                        []LoadReport    // to send with the next message
	informs                      []int32         // cells of the keys and windows to inform the peer of
	informsBy                    time.Duration   // by when, never for none
	greeting                     bool            // a new peer is informed of what others were informed of before
	greeted                      int32           // keys visited for that
	announcedRules               announced       // the hash of the own rules
	announcedClock               announced       // the own clock minus the nonce, in milliseconds
	sentMetas                    sentMetas
	sentKeys                     keyTable
	express                      bool // the latest message held only such cells
	resyncing                    bool
	unused                       bool          // no message was sent, and the first one waits for a heartbeat
	second                       bool          // the first message is expected of the peer, a heartbeat earlier
	trailAt                      time.Duration // when a message is due that ends slopes, never for none: see scope.trail

	// Changes are noted here: see dispatch. The link was sent everything up to
	// sent, and changes up to walked are for other peers.
	marked, behind bool          // there may be changes; news does not have them
	markedFor      time.Duration // when these are due, 0 for none
	walked         uint64        // version of the state, 0 for sent
	news           []int32       // cells that changed since
	// beat is the time between two messages without changes, peerBeat that of
	// the peer.
	beat, peerBeat, phase time.Duration

	// Received from the peer.
	ready      bool
	nonce      uint64        // of its latest message
	nonceAt    time.Duration // when that was received
	contiguous uint64        // all its versions up to here were received
	accepted   uint64        // the same since a resync was requested: it is acknowledged
	omittedAt  time.Duration // when a refused cell was not listed, 0 for none since then
	whole      bool          // all its cells were received once
	lacks      bool          // its latest message announced more, as in a resync
	answered   uint64        // the latest of our nonces that its messages echoed
	echoed     uint64        // the same, of those up to its latest complete message
	receivedAt time.Duration // when its latest complete message was received, -1 for never
	sentAt     time.Duration // that message's nonce
	joined     time.Duration
	rtt        time.Duration // -1 for unknown
	lag        time.Duration // the age its view reaches before the next message
	slow       time.Duration // the same of a peer with slower heartbeats than expected
	expected   time.Duration // by when it should have sent a message, never for any time
	unsent     time.Duration
	ownAge     time.Duration
	staleness  []Staleness
	clock      int    // place in Clocks, a hint
	viewed     bool   // ownAge and staleness are known
	wall       int64  // its latest stamp, in milliseconds
	wallNonce  uint64 // of the message with it, 0 before the first one
	rules      uint64 // the hash of its rules, 0 before it is known
	silent     bool
	differs    bool // its rules differ

	rated   []int32 // cells that its latest messages gave a slope
	refused []listed[Refusal]
	listed  map[CellID]int // the cells of refused
	repair  []listed[uint16]
	metas   receivedMetas
	keys    keyTable

	digestAt time.Duration // when our digests were sent last
	// repairedAt is when buckets were last sent again for the peer, 0 for
	// never.
	repairedAt time.Duration
}

// links are the connections to all peers, by incarnation.
type links []*link

// newLink returns the link of a new peer. base is above every version that an
// earlier link to it may have used.
func newLink(now time.Duration, cfg *Config, self string, p Peer, base, version uint64) *link {
	l := &link{
		cfg: cfg, peer: p, local: p.Region == self, incarnation: RegionIncarnation(p.Region), ready: p.Ready,
		base: base, resyncTo: version, resyncing: true, cursor: none, receivedAt: -1, rtt: -1, joined: now, greeting: true,
		lastSent: -time.Hour, digestAt: now, owedAt: never, expected: never, informsBy: never, trailAt: never, behind: true, naming: namingOf(p.Name),
		announcedRules: announced{at: -1}, announcedClock: announced{at: -1},
	}
	l.lag = 2 * l.interval()
	l.due = l.next(now)
	l.owedAt = l.due
	return l
}

// maxQuietInterval is the longest time between two messages with Config.Quiet:
// increments may be delayed longer.
const maxQuietInterval = time.Second

// interval returns the time between two messages that are not expedited.
func (l *link) interval() time.Duration {
	return max(l.shortest(), min(l.cfg.Quiet, maxQuietInterval))
}

// shortest returns the same of a daemon without Config.Quiet.
func (l *link) shortest() time.Duration {
	if l.local {
		return l.cfg.Interval
	}
	return l.cfg.WANInterval
}

// next returns the next multiple of the interval, so that the shards of a
// daemon, which share its clock, send together.
func (l *link) next(now time.Duration) time.Duration {
	return (now/l.interval() + 1) * l.interval()
}

// dueAt returns when the next message is due.
func (l *link) dueAt() time.Duration {
	at := l.informsBy
	if l.pending() {
		at = 0
	}
	return min(l.due, max(at, l.lastSent+l.cfg.MinGap))
}

// pending reports whether there is anything expedited.
func (l *link) pending() bool { return len(l.expedited)+len(l.rights) > 0 }

// maxExpedited bounds the expedited cells of a link; more wait for the
// interval.
const maxExpedited = 256

// expedite makes the link send a cell without waiting, and reports whether it
// is new.
func (l *link) expedite(i int32) bool {
	if len(l.expedited) >= maxExpedited || slices.Contains(l.expedited, i) {
		return false
	}
	l.expedited = append(l.expedited, i)
	l.queue.fix(l)
	return true
}

// patience returns how long an acknowledgement may take.
func (l *link) patience() time.Duration {
	trip := max(l.rtt, 0)
	if l.rtt < 0 {
		trip = 4 * l.interval()
	}
	return 2*trip + acknowledgeAfter + 3*l.interval()
}

// timeout rewinds the link if no acknowledgement arrived in time, and reports
// whether it did.
func (l *link) timeout(now time.Duration) (rewound bool) {
	if l.acked == l.sent {
		l.backoff, l.resendAt = 0, 0
		return false
	}
	if now < l.resendAt {
		return false
	}
	if l.resendAt != 0 {
		rewound = true
		l.rewind()
		l.backoff = min(l.backoff+1, 4)
	}
	l.resendAt = now + l.patience()<<l.backoff
	return rewound
}

// rewind makes the next message start from the acknowledged version. It
// describes its cells anew: the peer may have lost what it knew.
func (l *link) rewind() {
	l.mayLack(l.acked)
	l.sent, l.cursor, l.inflight = l.acked, none, 0
	l.sentMetas.forget()
	l.sentKeys = nil
	l.behind, l.walked, l.news = true, 0, nil
}

// resync makes the link send all cells again, from the acknowledged version on.
func (l *link) resync(version uint64) {
	l.base += version
	l.rewind()
	l.resyncing = true
}

// position returns the version of the state up to which everything was sent.
func (l *link) position() uint64 {
	if l.sent < l.base {
		return 0
	}
	return l.sent - l.base
}

// mayLack notes that changes after a version are sent in several messages, or
// again. The peer lacks one until it was sent all of them: the cell may have
// changed again, and only its latest change is sent.
func (l *link) mayLack(from uint64) { l.lackFrom, l.lackTo = min(l.lackFrom, from), 0 }

// settleLack notes that the peer has all changes up to lackTo.
func (l *link) settleLack() {
	if l.lackTo != 0 && l.acked >= l.lackTo {
		l.lackFrom, l.lackTo = math.MaxUint64, 0
	}
}

// has reports whether the peer was sent a change of the state by its version,
// or the change after it of its cell.
func (l *link) has(version uint64) bool {
	return version == 0 || version <= l.position() && l.base+version <= l.lackFrom
}

// listed is an item that every message lists until the peer has echoed one with
// it.
type listed[T any] struct {
	item  T
	nonce uint64 // of the first message with it, 0 for none yet
}

// list returns the items and marks them as listed in a message.
func list[T any](items []listed[T], nonce uint64) []T {
	if len(items) == 0 {
		return nil
	}
	out := make([]T, len(items))
	for i := range items {
		if items[i].nonce == 0 {
			items[i].nonce = nonce
		}
		out[i] = items[i].item
	}
	return out
}

// settle drops the items that the peer has received.
func settle[T any](items []listed[T], echo uint64) []listed[T] {
	return slices.DeleteFunc(items, func(t listed[T]) bool { return t.nonce != 0 && t.nonce <= echo })
}

// announced is the state of a value that seldom changes: messages to a peer
// contain it until the peer has echoed one with it, and then once per
// announceEvery, since a peer may have dropped its link and made a new one.
type announced struct {
	value int64
	nonce uint64        // of the first message with it, 0 once the peer has it
	at    time.Duration // when it was sent last, -1 for never
}

const (
	// announceEvery is how often a value is sent to a peer that has it.
	announceEvery = 30 * time.Second
	// clockTolerance is the change of the own clock, in milliseconds, from
	// which on the next message has a stamp. The clock that a peer derives from
	// a repeated stamp may be off by twice as much.
	clockTolerance = 2
)

// next reports whether a message contains the value, which changed if it is
// more than a tolerance away from the former one.
func (a *announced) next(now time.Duration, value, tolerance int64, nonce uint64) bool {
	if a.at < 0 || value > a.value+tolerance || value < a.value-tolerance {
		a.value, a.nonce = value, nonce
	} else if a.nonce == 0 && now/announceEvery == a.at/announceEvery {
		return false
	}
	a.at = now
	return true
}

// settle notes an echo of the peer.
func (a *announced) settle(echo uint64) {
	if a.nonce != 0 && a.nonce <= echo {
		a.nonce = 0
	}
}

// starting reports whether the peer may have just started. Its shards become
// ready one after the other but share frames, and so one header: a frame
// without the later shards announces it ready, and the next one must not revoke
// that.
func (l *link) starting(now time.Duration) bool { return now-l.joined < 2*l.cfg.ReadyWithin }

// age returns the proven staleness of the view of the peer, by nonce echo; -1
// before the first echo.
func (l *link) age(now time.Duration) time.Duration {
	if l.echoed == 0 {
		return -1
	}
	return now - sentAt(l.echoed) + l.unsent
}

// view returns the estimated staleness of the view: the time since the latest
// message and half a round trip. With Config.Quiet it is only the time on the
// network, since delayed increments are too small to count. It returns ok false
// if the peer has been silent for three lags. now may be a little before the
// latest message: the shards of a turn share its time.
func (l *link) view(now time.Duration) (age time.Duration, ok bool) {
	if l.receivedAt < 0 || now-l.receivedAt > 3*l.lag {
		return 0, false
	}
	age = max(0, now-l.receivedAt) + max(0, l.rtt)/2
	if l.cfg.Quiet > 0 {
		age = min(age, max(0, l.rtt)/2+2*l.cfg.MinGap)
	}
	return age, true
}

// recent returns the age of the view, at most a lag: a peer that counted
// anything would have sent it. It returns ok false if the peer is silent.
func (l *link) recent(now time.Duration) (age time.Duration, ok bool) {
	return min(max(0, now-l.receivedAt), l.lag) + max(0, l.rtt)/2, l.heard(now)
}

// complete records a complete message received at now.
func (l *link) complete(now time.Duration, m *Message) {
	at := sentAt(min(m.Nonce, nonceOf(longestClaim)))
	l.arrived(now, at)
	older := max(0, at-l.sentAt)
	l.receivedAt, l.sentAt, l.unsent = now, at, min(m.Unsent, longestClaim)
	if m.HasViews {
		l.viewed, l.ownAge, older = true, min(m.Own, longestClaim), 0
		l.staleness = append(l.staleness[:0], m.Staleness...)
	}
	// Without fresh views, those before are older by the time between the two
	// messages.
	l.ownAge = min(l.ownAge+older, longestClaim)
	for i := range l.staleness {
		l.staleness[i].Age = min(min(l.staleness[i].Age, longestClaim)+older, longestClaim)
	}
	// The peer had received that nonce before it sent this message, whichever
	// message echoed it: while each answer is in the first of several messages,
	// the complete one has no echo.
	l.echoed = l.answered
	l.expected = never
}

// longestClaim bounds the times that a peer claims, so that sums with them do
// not overflow: a negative age could not be sent to other peers.
const longestClaim = 10 * 365 * 24 * time.Hour

// measureRTT measures the round trip from an echo.
func (l *link) measureRTT(now time.Duration, m *Message) {
	if m.Echo == 0 {
		return
	}
	trip := now - sentAt(m.Echo) - sentAt(m.Held)
	if trip < 0 || trip > longestClaim {
		return
	}
	if l.rtt < 0 || trip < l.rtt {
		l.rtt = trip
	} else {
		l.rtt += (trip - l.rtt) / 16
	}
}

// maySend reports whether the peer may send a cell. No peer writes the cells of
// this daemon, self. Another region sends sums only: its own, or those it has
// of this region.
func (l *link) maySend(c *Cell, self, region crdt.Incarnation) bool {
	if c.WindowLength < 1 || c.Carry < 0 || c.Value.N > c.Value.P || c.Value.P > crdt.Max {
		return false
	}
	switch c.Kind {
	case Daemon:
		return l.local && c.Incarnation != self
	case Others:
		return l.local && c.Incarnation == self
	case Given:
		return c.Incarnation == self && c.Value.N == 0
	case Transferred:
		return l.local && c.Incarnation == l.peer.ID
	case Received:
		return false
	}
	return l.local && c.Incarnation != region || c.Incarnation == l.incarnation || c.Incarnation == region
}

// cellAge returns the staleness of the view of a cell, false if its sender is
// silent.
func cellAge(e *Engine, now time.Duration, c *cell) (time.Duration, bool) {
	l := linkOf(e, c.via)
	if l == nil {
		return 0, false
	}
	age, ok := l.view(now)
	if l.local && c.Kind == RegionSum {
		age, ok = l.forwarded(now)
	}
	if !ok {
		return 0, false
	}
	if c.Kind == Others { // it is sent again only if that matters
		age = now - c.received + max(0, l.rtt)/2
		return age, age <= 3*l.lag
	}
	age = min(age, now-c.received+max(0, l.rtt)/2) // the cell may be from a later message
	if c.Kind == Daemon {
		return age, true
	}
	if !l.local {
		return age + l.ownAge, l.viewed
	}
	for _, s := range l.staleness {
		if s.Region == c.Incarnation {
			return age + s.Age, age <= 4*l.cfg.WANInterval
		}
	}
	return 0, false
}

// forwarded returns the time since the latest message of a peer that forwards
// sums of other regions: it sends one when a slope ends.
func (l *link) forwarded(now time.Duration) (age time.Duration, ok bool) {
	age = max(0, now-l.receivedAt) + max(0, l.rtt)/2
	return age, l.heard(now)
}

// ownAge returns the greatest staleness of the view of the own region, without
// silent daemons.
func (ls links) ownAge(now time.Duration) time.Duration {
	oldest := time.Duration(0)
	for _, l := range ls {
		if age, ok := l.recent(now); ok && l.local {
			oldest = max(oldest, age)
		}
	}
	return oldest
}

// staleness returns the greatest staleness of the view of each other region,
// without silent daemons, in the memory of out, which is empty. A daemon
// without slopes may be quiet for long and counts nothing meanwhile.
func (ls links) staleness(now time.Duration, out []Staleness) []Staleness {
	for _, l := range ls {
		age, ok := l.view(now)
		if !ok || l.local || !l.viewed || len(l.rated) == 0 {
			continue
		}
		age += l.ownAge
		if i := slices.IndexFunc(out, func(s Staleness) bool { return s.Region == l.incarnation }); i >= 0 {
			out[i].Age = max(out[i].Age, age)
		} else {
			out = append(out, Staleness{l.incarnation, age})
		}
	}
	slices.SortFunc(out, func(a, b Staleness) int { return cmp.Compare(a.Region, b.Region) })
	return out
}
