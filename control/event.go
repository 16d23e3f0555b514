package control

import (
	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/internal/eventlog"
)

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events.
const (
	// Begun: the cluster was founded.
	Begun EventKind = iota
	// Applied: a command changed the record. Text describes it.
	Applied
	// CommandRefused: a command changes nothing. Text is the reason.
	CommandRefused
	// LeaderChanged: this daemon leads the control log, or does so no more.
	LeaderChanged
	// VoterAdded, VoterRemoved: the voters changed. Text names the daemon.
	VoterAdded
	VoterRemoved
	// Diverged: the record differed from that of the leader, and is replaced.
	Diverged
	// Recovered: a recovery began here. TailDropped: entries were dropped, as
	// a recovery began before them.
	Recovered
	TailDropped
	// Split: Peer has another recovery of the same number.
	Split
	// ForeignCluster: Peer belongs to another cluster.
	ForeignCluster
	// FoundersDiffer: Peer has other founders in its settings.
	FoundersDiffer
	// OldDisk: the state of this daemon is older than what it has sent, or
	// another daemon has a copy. It goes on under a new id. Text is the reason.
	OldDisk
	// IDEnded: an id, that of Peer, does not count any more. Text names it and
	// the reason.
	IDEnded
	// Rejected: a message or an item of Peer is invalid. Text is the reason.
	Rejected
	// Abstains: the voter of this daemon stopped until the next start. Text is
	// the reason.
	Abstains
	// StoreFailed, StoreMended: items could not be stored; they can again.
	StoreFailed
	StoreMended
	// LimitsInForce: pending limits will be in force from the time in Text on.
	LimitsInForce
	// EmergencyTaken: an emergency override counts. Text describes it.
	EmergencyTaken
	// QuorumLost, QuorumRegained: no leader is known for some time; one is
	// known again. Text states how many voters are live.
	QuorumLost
	QuorumRegained
	// GenerationBegun, GenerationEnded: a region was added or removed. Text
	// names it and the version that added it.
	GenerationBegun
	GenerationEnded
	// OverrideExpired: an override ended by itself. Text describes it.
	OverrideExpired
	// Resumed: an operator ended the start of this daemon, which nobody
	// confirmed.
	Resumed

	eventKinds = iota // their number
)

// EventKinds returns all kinds.
func EventKinds() []EventKind { return enum.All[EventKind](eventKinds) }

// String returns the kind for logs.
func (k EventKind) String() string {
	return enum.Name(k,
		"begun", "applied", "command refused", "leader changed", "voter added", "voter removed",
		"diverged", "recovered", "tail dropped", "split", "foreign cluster", "founders differ",
		"old disk", "id ended", "rejected", "abstains", "store failed", "store mended", "limits in force", "emergency taken",
		"quorum lost", "quorum regained", "generation begun", "generation ended", "override expired", "resumed",
	)
}

// Event is something that happened in a node, for logs and metrics.
type Event = eventlog.Event[EventKind]
