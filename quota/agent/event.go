package agent

import (
	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/internal/eventlog"
)

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events.
const (
	// Proposed: this daemon proposed an epoch. Text describes it.
	Proposed EventKind = iota
	// Settled: an epoch came into force here. Text is its ID.
	Settled
	// Refused: a message or an item of Peer was rejected. Text is the reason.
	Refused
	// StoreFailed: the record could not be stored. Text is the error.
	StoreFailed
	// StoreMended: the record could be stored again.
	StoreMended
	// BecameReady: the daemon has learned the epochs of its region.
	BecameReady
	// Leading, Following: the daemon became the leader of its region, or is
	// the leader no more.
	Leading
	Following
	// PinsUnfit: a rule's pins do not fit the regions. Text is the reason.
	PinsUnfit
)

// String returns the kind for logs.
func (k EventKind) String() string {
	return enum.Name(k,
		"proposed", "settled", "refused", "store failed", "store mended",
		"became ready", "leading", "following", "pins unfit",
	)
}

// Event is something that happened in an agent, for logs and metrics.
type Event = eventlog.Event[EventKind]

// refused adds an event for a rejected item of a peer, empty for this daemon,
// unless there was the same one lately.
func (a *Agent) refused(peer string, err error) {
	a.log.AddOnce(Refused, peer, err.Error(), err.Error())
}
