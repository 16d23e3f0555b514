package node

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// EventKind says what happened.
type EventKind uint8

// The events of a replica. Only the shell logs and counts; in the simulator
// they are what its auditors and its coverage see.
const (
	// PeerJoined and PeerLeft: membership added or dropped an incarnation.
	PeerJoined EventKind = iota
	PeerLeft
	// PeerSilent: no message came from a live peer for three lags; what it
	// may have admitted since is no longer extrapolated. PeerResponding ends it.
	PeerSilent
	PeerResponding
	// SenderUnknown: a message from an incarnation that is no member.
	SenderUnknown
	// MessageMisplaced: a message for another incarnation or shard.
	MessageMisplaced
	// DriftRejected: a peer's stamp was more than max_offset ahead. Its
	// counts were merged, its clock was not adopted. Amount is by how many
	// milliseconds.
	DriftRejected
	// ClockOutlier: more than half of the peers are off by more than 80 % of
	// max_offset in one direction, so that it is this clock that is wrong.
	// Amount is the median offset in milliseconds. ClockAgrees ends it.
	ClockOutlier
	ClockAgrees
	// JumpHeld: the wall clock jumped ahead by more than max_offset and no
	// majority of peers has it; labels go on at the monotonic rate. Amount is
	// the jump in milliseconds. JumpAdopted: it was taken over.
	JumpHeld
	JumpAdopted
	// CellRefused: a cell of a peer was not taken; Reason says why.
	CellRefused
	// CellStale: a cell of a label that is over was ignored.
	CellStale
	// CellForged: a cell that the peer may not tell was ignored: of our own
	// slot, or with more refunds than hits.
	CellForged
	// RefusalReceived: a peer refused a cell of ours; it stays to be sent.
	RefusalReceived
	// RuleUnknown: cells of a rule that is not in force here were kept.
	RuleUnknown
	// RulesDiverged: a peer has another rule set. RulesAgree ends it.
	RulesDiverged
	RulesAgree
	// ResyncStarted and ResyncDone: a peer is being told everything.
	ResyncStarted
	ResyncDone
	// Resent: a peer did not acknowledge in time and is told again.
	Resent
	// BucketRepaired: digests differed, and a bucket was sent again.
	BucketRepaired
	// CountsRestored: other regions remembered hits of this region that no
	// daemon of it knew. Amount is how many.
	CountsRestored
	// BecameReady: every live peer of the region was heard whole, or the
	// bound on waiting for that has passed (Amount 1).
	BecameReady

	eventKinds = iota
)

var eventNames = [...]string{
	"peer_joined", "peer_left", "peer_silent", "peer_responding", "sender_unknown", "message_misplaced",
	"drift_rejected", "clock_outlier", "clock_agrees", "jump_held", "jump_adopted",
	"cell_refused", "cell_stale", "cell_forged", "refusal_received", "rule_unknown", "rules_diverged", "rules_agree",
	"sweep_started", "sweep_done", "resent", "bucket_repaired", "counts_restored", "became_ready",
}

// String returns the name that logs and metrics carry.
func (k EventKind) String() string {
	if int(k) >= len(eventNames) {
		return "unknown"
	}
	return eventNames[k]
}

// EventKinds lists all kinds.
func EventKinds() []EventKind {
	all := make([]EventKind, eventKinds)
	for i := range all {
		all[i] = EventKind(i)
	}
	return all
}

// Event is something that happened in a replica.
type Event struct {
	At     time.Duration // monotonic
	Kind   EventKind
	Peer   crdt.Incarnation // 0 when it concerns none
	Reason gossip.Reason    // CellRefused and RefusalHeard
	Amount uint64           // see the kinds; elsewhere how many of these there were
}
