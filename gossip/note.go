package gossip

import (
	"github.com/georld/rld/crdt"
)

// RightsMessageKind says what a note is about.
type RightsMessageKind uint8

const (
	// TransferRequest: the sender wants rights of the receiver, of its region. It is
	// answered by a gift or by an TransferRefusal.
	TransferRequest RightsMessageKind = iota + 1
	// TransferRefusal: the receiver asked and gets nothing.
	TransferRefusal
	// NeedReport: a daemon tells the aggregator of its region that it runs short.
	NeedReport
	// ShortageNotice: a region runs short by Need; its aggregator tells those of the
	// others.
	ShortageNotice
	// CollectRequest: an aggregator has the receiver, of its region, give up to Need
	// to For.
	CollectRequest

	// MaxRightsMessage is the greatest of them.
	MaxRightsMessage = CollectRequest
)

// RightsMessage is something that a daemon says about rights of a key's label. It is sent
// once and never acknowledged: who said it says it again when nothing comes of
// it.
type RightsMessage struct {
	Kind   RightsMessageKind
	Key    crdt.Key
	Window int64
	// Rule is Span.Rule of the key.
	Rule uint64
	// Rights are those the sender has left, Second the hits that were offered
	// to it in the last second.
	Rights, Second uint64
	// Need is how many rights are wanted (ShortageNotice, CollectRequest), For whom (CollectRequest).
	Need uint64
	For  crdt.Incarnation
}

// MaxRightsMessages bounds the notes of a message; what does not fit is not said.
const MaxRightsMessages = 64

// Send sends a note to a peer at once. It returns false when it is none, or has
// as many notes to be sent already.
func (e *Engine) Send(to crdt.Incarnation, n RightsMessage) bool {
	l := e.link(to)
	if l == nil || len(l.notes) >= MaxRightsMessages {
		return false
	}
	l.notes = append(l.notes, n)
	e.urgent = true
	return true
}
