package gossip

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

// link is what is known of one peer and by it. Versions to a peer are those of
// the state plus base: telling everything again starts a new base, so that
// they still only grow.
type link struct {
	peer        Peer
	local       bool // of the same region
	incarnation crdt.Incarnation
	team        int // place of its region's team

	// What the peer is told. Invariant: acked <= sent.
	base     uint64
	acked    uint64 // all up to here was taken
	sent     uint64 // all up to here was sent
	reached  uint64 // the greatest that sent ever was: it may be acknowledged yet
	cursor   int32  // the cell of the version sent, a hint
	sweepTo  uint64 // versions of the state up to here are told of all slots
	inflight int    // cells sent since acked moved
	resendAt time.Duration
	// The oldest message that is not acknowledged, or, after some of them
	// were, the latest: an echo of it without its acknowledgement is a loss.
	openNonce, openHi, lastNonce uint64
	backoff                      int
	lastSent                     time.Duration
	due                          time.Duration
	urgent                       []int32         // cells that are to be told at once
	notes                        []RightsMessage // likewise, once
	express                      bool            // the latest message told only such cells
	sweeping                     bool

	// What the peer told.
	ready   bool
	nonce   uint64        // of its latest message
	nonceAt time.Duration // when that came
	contig  uint64        // all its versions up to here were taken
	whole   bool          // it was heard whole once
	echoed  uint64        // the latest of our nonces it had when it last sent a complete message
	heardAt time.Duration // when its latest complete message came, -1 never
	heard   time.Duration // that message's nonce
	joined  time.Duration
	rtt     time.Duration // -1 for unknown
	lag     time.Duration // how old its view gets before the next message
	unsent  time.Duration
	own     time.Duration
	behind  []Staleness
	rules   uint64
	silent  bool
	differs bool // its rules are others

	rated   []int32 // cells that its latest messages gave a slope
	refused []told[Refusal]
	repair  []told[uint16]

	digestAt time.Duration // when our digests were sent last
	// repairedAt is when buckets were sent again that the peer lacked, 0 for
	// never.
	repairedAt time.Duration
}

// told is an item that is listed in every message until the peer has echoed
// one that carried it.
type told[T any] struct {
	item T
	in   uint64 // nonce of the first message that carried it, 0 for none yet
}

// hurried reports whether anything is to be told at once.
func (l *link) hurried() bool { return len(l.urgent) > 0 || len(l.notes) > 0 }

// maxUrgent bounds the cells a link tells at once; more wait for the interval.
const maxUrgent = 256

// expedite makes a link tell a cell as soon as it may.
func (e *Engine) expedite(l *link, i int32) {
	if len(l.urgent) < maxUrgent && !slices.Contains(l.urgent, i) {
		l.urgent = append(l.urgent, i)
		e.urgent = true
	}
}

// maxRefused bounds the cells a link refuses at a time. Beyond it a message is
// not acknowledged and comes again.
const maxRefused = 1_024

// carried lists the items and marks them as carried by a message.
func carried[T any](items []told[T], nonce uint64) []T {
	if len(items) == 0 {
		return nil
	}
	out := make([]T, len(items))
	for i := range items {
		if items[i].in == 0 {
			items[i].in = nonce
		}
		out[i] = items[i].item
	}
	return out
}

// settle forgets the items that the peer has seen.
func settle[T any](items []told[T], echo uint64) []told[T] {
	kept := items[:0]
	for _, t := range items {
		if t.in == 0 || t.in > echo {
			kept = append(kept, t)
		}
	}
	return kept
}

// age is how old the view of the peer is by nonce echo: what it had sent by
// then is known here. -1 when it was never heard.
func (l *link) age(now time.Duration) time.Duration {
	if l.echoed == 0 {
		return -1
	}
	return now - time.Duration(l.echoed)*time.Microsecond + l.unsent
}

// view estimates how old the view is: the time since the message came and half
// a round trip. ok is false when the peer has been silent for three lags.
func (l *link) view(now time.Duration) (age time.Duration, ok bool) {
	if l.heardAt < 0 || now-l.heardAt > 3*l.lag {
		return 0, false
	}
	return now - l.heardAt + max(0, l.rtt)/2, true
}

// took notes a complete message that came at now.
func (l *link) took(now time.Duration, m *Message, interval time.Duration) {
	if l.heardAt >= 0 {
		gap := max(now-l.heardAt, interval)
		l.lag += (gap - l.lag) / 8
		if gap > l.lag {
			l.lag = gap
		}
	}
	l.heardAt, l.heard = now, time.Duration(m.Nonce)*time.Microsecond
	l.unsent, l.own = m.Unsent, m.Own
	l.behind = append(l.behind[:0], m.Staleness...)
	if m.Echo != 0 {
		l.echoed = max(l.echoed, m.Echo)
	}
}

// measure takes the round trip out of an echo.
func (l *link) measure(now time.Duration, m *Message) {
	if m.Echo == 0 {
		return
	}
	trip := now - time.Duration(m.Echo)*time.Microsecond - time.Duration(m.Held)*time.Microsecond
	if trip < 0 {
		return
	}
	if l.rtt < 0 || trip < l.rtt {
		l.rtt = trip
	} else {
		l.rtt += (trip - l.rtt) / 16
	}
}

// tell makes the peer be told everything again, from what it acknowledged on.
func (l *link) tell(version uint64) {
	l.base += version
	l.sent, l.cursor, l.inflight = l.acked, none, 0
}

// real returns the version of the state up to which the peer was sent all.
func (l *link) real() uint64 {
	if l.sent < l.base {
		return 0
	}
	return l.sent - l.base
}
