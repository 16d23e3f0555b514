package gossip

import (
	"github.com/georld/rld/crdt"
)

// NoteKind says what a note is about.
type NoteKind uint8

const (
	// Ask: the sender wants rights of the receiver, of its region. It is
	// answered by a gift or by an Answer.
	Ask NoteKind = iota + 1
	// Answer: the receiver asked and gets nothing.
	Answer
	// Want: a daemon tells the aggregator of its region that it runs short.
	Want
	// Hunger: a region runs short by Need; its aggregator tells those of the
	// others.
	Hunger
	// Collect: an aggregator has the receiver, of its region, give up to Need
	// to For.
	Collect

	// MaxNote is the greatest of them.
	MaxNote = Collect
)

// Note is something that a daemon says about rights of a key's label. It is sent
// once and never acknowledged: who said it says it again when nothing comes of
// it.
type Note struct {
	Kind  NoteKind
	Key   crdt.Key
	Label int64
	// Rule is Span.Rule of the key.
	Rule uint64
	// Rights are those the sender has left, Second the hits that were offered
	// to it in the last second.
	Rights, Second uint64
	// Need is how many rights are wanted (Hunger, Collect), For whom (Collect).
	Need uint64
	For  crdt.Slot
}

// MaxNotes bounds the notes of a message; what does not fit is not said.
const MaxNotes = 64

// Say sends a note to a peer at once. It returns false when it is none, or has
// as many notes to be sent already.
func (e *Engine) Say(to crdt.Slot, n Note) bool {
	l := e.link(to)
	if l == nil || len(l.notes) >= MaxNotes {
		return false
	}
	l.notes = append(l.notes, n)
	e.urgent = true
	return true
}
