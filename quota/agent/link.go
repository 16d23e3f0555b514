package agent

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/epoch"
)

// link is the state of a peer and of the messages to it.
type link struct {
	cfg        *Config
	peer       gossip.Peer
	local      bool          // a regional peer
	sentAt     time.Duration // of the latest message to it
	due        time.Duration
	receivedAt time.Duration // of its latest message, -1 before
	revision   uint64        // Agent.changes when due was computed
	stated     statement     // of the latest message to it

	// From its newest message.
	stamp     hlc.Timestamp
	member    uint64
	ready     bool
	leaving   bool
	diskless  bool
	tables    [3]known
	extension *epoch.Extension // to send
	period    uint64           // the latest period of our demand that it has
	demand    periodDemand     // its own

	sent map[print]sending
}

// known is the content of a table: its oldest and settled epoch, and the
// fingerprints of the items that peers can record. Of votes it has fingerprints
// alone.
type known struct {
	base, settled epoch.ID
	has           []uint64
}

// equal reports whether two tables have the same content.
func (k *known) equal(o *known) bool {
	return k.base == o.base && k.settled == o.settled && slices.Equal(k.has, o.has)
}

// statement is what a message states about its sender.
type statement struct {
	ready  bool
	tables [3]known
}

// sending is an item under way.
type sending struct {
	at    time.Duration
	times uint
}

// links are the peers by incarnation.
type links []*link

// find returns the link of an incarnation, nil for none.
func (ls links) find(id crdt.Incarnation) *link {
	i, ok := slices.BinarySearchFunc(ls, id, func(l *link, id crdt.Incarnation) int { return cmp.Compare(l.peer.ID, id) })
	if !ok {
		return nil
	}
	return ls[i]
}

// leaving reports whether a live daemon of the own region, by its participant,
// will stop soon.
func (ls links) leaving(at time.Duration, id uint64) bool {
	return slices.ContainsFunc(ls, func(l *link) bool {
		return l.local && l.leaving && l.member == id && l.alive(at)
	})
}

// restEvery is the longest time between two messages to a peer that lacks
// nothing. Within a horizon there are six at least.
const restEvery = 5 * time.Second

// restOf returns the time between two messages to a peer that lacks nothing,
// under the epochs of the region's daemons that may be in force.
func restOf(local *epoch.Table) time.Duration {
	rest := restEvery
	for i := range local.Len() {
		if ms := local.At(i).Epoch.Horizon; ms > 0 {
			rest = min(rest, time.Duration(ms)*time.Millisecond/6)
		}
	}
	return rest
}

// interval returns the time between two messages without news to a peer that
// may lack something.
func (l *link) interval() time.Duration {
	if l.local {
		return l.cfg.Interval
	}
	return l.cfg.WANInterval
}

// pause returns the time between two messages without news to a peer. It is
// longer while both are ready, have the same items, and each has stated so.
func pause(a *Agent, l *link) time.Duration {
	if l.receivedAt < 0 || !a.ready || !l.stated.ready || !l.ready {
		return l.interval()
	}
	for table := range l.tables {
		own := &a.content(table).known
		if (l.local || table == regionTable) && !(l.stated.tables[table].equal(own) && l.tables[table].equal(own)) {
			return l.interval()
		}
	}
	return max(l.interval(), a.cfg.rest)
}

// alive reports whether a message of the peer arrived lately.
func (l *link) alive(at time.Duration) bool {
	silence := max(4*l.cfg.Interval, 3*l.cfg.rest) + time.Second
	if !l.local {
		silence = max(4*l.cfg.WANInterval, 3*l.cfg.rest) + 2*time.Second
	}
	return l.receivedAt >= 0 && at-l.receivedAt <= silence
}

// leads reports whether a daemon of the own region, by its name and readiness,
// is the leader: no other one that is ready and alive has a lower name. A
// daemon that is not ready leads only if none is.
func (ls links) leads(at time.Duration, name string, ready bool) bool {
	return !slices.ContainsFunc(ls, func(l *link) bool {
		return l.local && l.ready && l.alive(at) && (!ready || l.peer.Name < name)
	})
}

// addressed reports whether a peer of another region receives messages: the one
// with the lowest name there, those that send messages, and all while none
// does.
func (ls links) addressed(at time.Duration, l *link) bool {
	if l.alive(at) {
		return true
	}
	lowest, quiet := true, true
	for _, other := range ls {
		if other.peer.Region != l.peer.Region {
			continue
		}
		lowest = lowest && l.peer.Name <= other.peer.Name
		quiet = quiet && !other.alive(at)
	}
	return lowest || quiet
}

// origin is the source of an item that another daemon made.
type origin struct {
	at     time.Duration
	remote bool // from another region
}

// How long an item is not sent to peers that probably receive it from its
// source, inside a region and across regions.
const (
	holdLocal  = 500 * time.Millisecond
	holdAcross = 2 * time.Second
)

// maxOrigins bounds the remembered origins.
const maxOrigins = 1 << 14

// origins are the sources of items.
type origins map[print]origin

// note notes the source of a new item.
func (o origins) note(at time.Duration, p print, l *link) {
	if len(o) >= maxOrigins {
		clear(o)
	}
	o[p] = origin{at, !l.local}
}

// held reports whether an item is not yet sent to a peer.
func (o origins) held(at time.Duration, p print, l *link) bool {
	from, ok := o[p]
	hold := time.Duration(0)
	switch {
	case !ok:
		return false
	case l.local && !from.remote:
		hold = holdLocal
	case !l.local && from.remote:
		hold = holdAcross
	}
	return at < from.at+hold
}

// send reports whether to send the peer an item that it lacks, and notes that
// it is sent. Repetitions are spaced by doubling pauses.
func (l *link) send(at time.Duration, o origins, p print) bool {
	if o.held(at, p, l) {
		return false
	}
	s := l.sent[p]
	if s.times > 0 && at < s.at+l.cfg.resend(l.local)<<min(s.times-1, 5) {
		return false
	}
	if len(l.sent) >= maxOrigins {
		clear(l.sent)
	}
	l.sent[p] = sending{at, s.times + 1}
	return true
}
