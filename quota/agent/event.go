package agent

import (
	"time"

	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/internal/rendezvous"
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
type Event struct {
	At   time.Duration
	Kind EventKind
	// Peer is the name of the daemon that caused it, empty for this one.
	Peer string
	Text string
}

// maxEvents bounds the events between two calls of Ready; more are counted.
const maxEvents = 256

// refuseEvery is the least time between two events of the same refusal.
const refuseEvery = 10 * time.Second

// eventLog holds the events since the last call of Ready.
type eventLog struct {
	at      time.Duration // of the current call
	events  []Event
	dropped uint64
	refused map[uint64]time.Duration // when each refusal was added last
}

// add adds an event.
func (l *eventLog) add(kind EventKind, peer, text string) {
	if kind == Refused {
		key := rendezvous.Hash(peer, text)
		if at, known := l.refused[key]; known && l.at-at < refuseEvery {
			l.dropped++
			return
		}
		if l.refused == nil || len(l.refused) >= maxEvents {
			l.refused = map[uint64]time.Duration{}
		}
		l.refused[key] = l.at
	}
	if len(l.events) < maxEvents {
		l.events = append(l.events, Event{l.at, kind, peer, text})
	} else {
		l.dropped++
	}
}
