// Package eventlog keeps the events of a state machine until its driver logs
// them.
package eventlog

import (
	"time"

	"github.com/georld/rld/internal/rendezvous"
)

// Event is something that happened in a state machine, for logs and metrics.
type Event[K any] struct {
	At   time.Duration // monotonic
	Kind K
	// Peer is the name of the daemon that caused it, empty for this one.
	Peer string
	Text string
}

const (
	// maxEvents bounds the events between two calls of Take, and the remembered
	// causes. Events beyond it are dropped.
	maxEvents = 256
	// repeatAfter is the least time between two events of one cause.
	repeatAfter = 10 * time.Second
)

// Log holds the events since the last call of Take. The zero value is empty. It
// is not safe for concurrent use.
type Log[K any] struct {
	// At is the time of the events to be added. The owner sets it.
	At     time.Duration
	events []Event[K]
	caused map[uint64]time.Duration // when AddOnce added each cause last
}

// Add adds an event.
func (l *Log[K]) Add(kind K, peer, text string) {
	if len(l.events) < maxEvents {
		l.events = append(l.events, Event[K]{l.At, kind, peer, text})
	}
}

// AddOnce adds an event unless the peer had one of the same cause in the last
// ten seconds.
func (l *Log[K]) AddOnce(kind K, peer, cause, text string) {
	key := rendezvous.Hash(peer, cause)
	if at, known := l.caused[key]; known && l.At-at < repeatAfter {
		return
	}
	if l.caused == nil || len(l.caused) >= maxEvents {
		l.caused = map[uint64]time.Duration{}
	}
	l.caused[key] = l.At
	l.Add(kind, peer, text)
}

// Take returns the events and empties the log.
func (l *Log[K]) Take() []Event[K] {
	events := l.events
	l.events = nil
	return events
}
