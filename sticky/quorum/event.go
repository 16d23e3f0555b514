package quorum

import (
	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/internal/eventlog"
)

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events.
const (
	// LostDisk: the acceptor has lost the state that it had as a voter.
	LostDisk EventKind = iota
	// Voting: the acceptor has copied the state it needs, and votes. Text names
	// the layout.
	Voting
	// Sealed: it never votes again under the layout in Text.
	Sealed
	// Changed: the layout in Text is active.
	Changed
	// Rejected: an item of Peer was rejected. Text is the error.
	Rejected
	// StoreFailed: the log failed. The acceptor does not vote.
	StoreFailed
	// ClockOff: the clock of Peer is wrong, and it owns no keys.
	ClockOff
	// ClockAgrees: the clock of Peer is right again.
	ClockAgrees
	// EndedAhead: watermarks had been ended in the future, by a wrong clock.
	// Text has how far.
	EndedAhead
)

// String returns the kind for logs.
func (k EventKind) String() string {
	return enum.Name(k, "lost disk", "voting", "sealed", "layout changed", "rejected", "store failed", "clock off", "clock agrees", "ended ahead")
}

// Event is something that happened to an acceptor, for logs and metrics.
type Event = eventlog.Event[EventKind]
