package quorum

import "time"

// EventKind is what an Event is about.
type EventKind uint8

// The kinds of events.
const (
	// LostDisk: the replica has nothing stored and is not new.
	LostDisk EventKind = iota
	// Voting: the replica has copied what it needs, and votes. Text says under
	// which layout.
	Voting
	// Sealed: it never votes again under the layout that was in force.
	Sealed
	// Changed: daemons go by another layout. Text says by which.
	Changed
	// Disagreed: somebody says something else of a layout. Text says what.
	Disagreed
	// Refused: something of Peer was not taken. Text says why.
	Rejected
	// StoreFailed: the log failed; the replica does not vote any more.
	StoreFailed
)

// String returns the kind for logs.
func (k EventKind) String() string {
	names := [...]string{"lost memory", "voting", "sealed", "layout changed", "layouts disagree", "refused", "store failed"}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Event is something that happened to a replica, for logs and metrics.
type Event struct {
	At   time.Duration
	Kind EventKind
	// Peer is the name of the daemon it came from, empty for this one.
	Peer string
	Text string
}

const (
	// maxEvents bounds the events between two calls of Ready; more are counted.
	maxEvents = 256
	// rejectEvery is the least time between two events of the same refusal.
	rejectEvery = 10 * time.Second
)

func (r *Acceptor) event(kind EventKind, peer, text string) {
	if len(r.events) >= maxEvents {
		r.stats.Dropped++
		return
	}
	r.events = append(r.events, Event{r.at, kind, peer, text})
}
