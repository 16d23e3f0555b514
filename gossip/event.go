package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/enum"
)

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events. The engine reports most of them. Those about clocks,
// rules that are not in force and messages that the engine rejects come from
// its owner, through Report.
const (
	// PeerJoined and PeerLeft: membership added or dropped an incarnation.
	PeerJoined EventKind = iota
	PeerLeft
	// PeerSilent: no message came from a live peer for three heartbeats, or no
	// answer in time; hits that it may have admitted since are not
	// extrapolated any more.
	// PeerResponding ends it.
	PeerSilent
	PeerResponding
	// SenderUnknown: a message from an incarnation that is no member.
	SenderUnknown
	// MessageMisplaced: a message for another incarnation or shard.
	MessageMisplaced
	// DriftRejected: a peer's stamp was more than max_offset ahead. Its
	// counts were merged, its clock was not adopted. Amount is the excess in
	// milliseconds.
	DriftRejected
	// ClockOutlier: more than half of the peers differ by more than 80 % of
	// max_offset in one direction, so this clock is the wrong one. Amount is
	// the median offset in milliseconds, or up to a minute less where the round
	// trip is not known. ClockAgrees ends it.
	ClockOutlier
	ClockAgrees
	// JumpHeld: the wall clock jumped ahead by more than max_offset and no
	// majority of peers has followed; windows advance at the monotonic rate.
	// Amount is the jump in milliseconds. JumpAdopted ends it.
	JumpHeld
	JumpAdopted
	// CellRefused: a cell of a peer was refused; Reason has the cause.
	CellRefused
	// CellStale: a cell of a window that is over was ignored.
	CellStale
	// CellForged: a cell that the peer may not send was ignored: one of our own
	// incarnation, or one with more refunds than hits.
	CellForged
	// MetaUnknown: cells of a peer were ignored that name a description by a
	// number which the peer never described, or a key by bytes that stand for
	// none. It sends them again.
	MetaUnknown
	// TransferRejected: a peer claims to have transferred more rights than it
	// can hold.
	TransferRejected
	// SumExceeded: the sums of other regions for a key are greater than all
	// rights to it. They count no more than these regions can hold.
	SumExceeded
	// RefusalReceived: a peer refused a cell of ours; it is sent again later.
	RefusalReceived
	// RuleUnknown: cells of a rule that is not in force here were kept.
	RuleUnknown
	// RulesDiverged: a peer has another rule set. RulesAgree ends it.
	RulesDiverged
	RulesAgree
	// ResyncStarted and ResyncDone: all cells are sent to a peer again.
	ResyncStarted
	ResyncDone
	// Resent: a peer did not acknowledge in time; its cells are sent again.
	Resent
	// BucketRepaired: digests differed, and a bucket was sent again.
	BucketRepaired
	// CountsRestored: other regions had hits of this region that none of its
	// daemons had. Amount is their number.
	CountsRestored
	// BecameReady: each live peer of the region sent all of its cells, or the
	// wait for that reached its limit (Amount 1).
	BecameReady

	eventKinds = iota
)

var eventNames = []string{
	"peer_joined", "peer_left", "peer_silent", "peer_responding", "sender_unknown", "message_misplaced",
	"drift_rejected", "clock_outlier", "clock_agrees", "jump_held", "jump_adopted",
	"cell_refused", "cell_stale", "cell_forged", "meta_unknown", "transfer_rejected", "sum_exceeded", "refusal_received", "rule_unknown", "rules_diverged", "rules_agree",
	"resync_started", "resync_done", "resent", "bucket_repaired", "counts_restored", "became_ready",
}

// String returns the name for logs and metrics.
func (k EventKind) String() string { return enum.Name(k, eventNames...) }

// EventKinds lists all kinds.
func EventKinds() []EventKind { return enum.All[EventKind](eventKinds) }

// Event is something that happened in an engine or at its owner.
type Event struct {
	At     time.Duration // monotonic
	Kind   EventKind
	Peer   crdt.Incarnation // 0 if no peer is concerned
	Reason Reason           // CellRefused and RefusalReceived
	Amount uint64           // see the kinds; otherwise a number of cells
}

// maxEvents bounds the events between two calls of Events.
const maxEvents = 1_024

// Report adds an event of the engine's owner to those of the engine. Beyond
// 1,024 between two calls of Events, events are dropped.
func (e *Engine) Report(ev Event) {
	if len(e.events) < maxEvents {
		e.events = append(e.events, ev)
	}
}

func (e *Engine) event(now time.Duration, k EventKind, p crdt.Incarnation, r Reason, amount uint64) {
	e.Report(Event{now, k, p, r, amount})
}

// Events returns the events since the last call. The caller owns them.
func (e *Engine) Events() []Event {
	out := e.events
	e.events = nil
	return out
}
