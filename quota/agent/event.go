package agent

import (
	"time"

	"github.com/georld/rld/internal/rendezvous"
)

// EventKind is what an Event is about.
type EventKind uint8

// The kinds of events.
const (
	// Proposed: this daemon proposed an epoch. Text says of what.
	Proposed EventKind = iota
	// Settled: an epoch came into force here. Text names it.
	Settled
	// Refused: a message or an item of Peer was not taken. Text says why.
	Refused
	// StoreFailed: the record could not be stored. Text is the error.
	StoreFailed
	// StoreMended: it could be stored again.
	StoreMended
	// BecameReady: the daemon has learned what others of its region know.
	BecameReady
	// Leading, Following: the daemon speaks for its region now, or no more.
	Leading
	Following
	// PinsUnfit: a rule's pins do not fit the regions there are. Text says why.
	PinsUnfit
)

// String returns the kind for logs.
func (k EventKind) String() string {
	names := [...]string{"proposed", "settled", "refused", "store failed", "store mended",
		"became ready", "leading", "following", "pins unfit"}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Event is something that happened to an office, for logs and metrics.
type Event struct {
	At   time.Duration
	Kind EventKind
	// Peer is the name of the daemon it came from, empty for this one.
	Peer string
	Text string
}

// maxEvents bounds the events between two calls of Ready; more are counted.
const maxEvents = 256

// refuseEvery is the least time between two events of the same refusal.
const refuseEvery = 10 * time.Second

func (o *Agent) event(kind EventKind, peer, text string) {
	if kind == Refused {
		key := rendezvous.Hash(peer, text)
		if at, told := o.refused[key]; told && o.at-at < refuseEvery {
			o.dropped++
			return
		}
		if len(o.refused) >= maxEvents {
			clear(o.refused)
		}
		o.refused[key] = o.at
	}
	if len(o.events) < maxEvents {
		o.events = append(o.events, Event{o.at, kind, peer, text})
	} else {
		o.dropped++
	}
}
