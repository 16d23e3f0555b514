package control

import (
	"go.etcd.io/raft/v3/raftpb"

	"github.com/georld/rld/crdt"
)

// Peer is a live daemon by membership.
type Peer struct {
	Address      crdt.Incarnation // of its process, for messages
	Name, Region string
}

// Sender describes the daemon that sent a message.
type Sender struct {
	ID  ID     `json:"id"`
	Run Number `json:"run"`
	// Store is the number of its latest durable write.
	Store   uint64 `json:"store,omitempty"`
	Durable bool   `json:"durable,omitempty"`
	// Leaving daemons give their vote away.
	Leaving bool `json:"leaving,omitempty"`
	// Starting daemons do not know yet whether their record is current.
	Starting bool `json:"starting,omitempty"`
	// Leader is the leader of the control log as far as it knows, zero for
	// none.
	Leader ID `json:"leader,omitzero"`
}

// Message is a message between the nodes of two daemons. Each one carries the
// version of its sender: a receiver with a later version answers with what the
// sender lacks, and one with an earlier version asks for it in the same way.
type Message struct {
	From, To crdt.Incarnation `json:"-"`

	Sender  Sender  `json:"sender"`
	Cluster Number  `json:"cluster"` // 0 before the founding
	Version Version `json:"version"`

	// Base is the record of the sender, for a receiver that lags far behind.
	Base []byte `json:"-"`
	// After is the index before the first of Entries, which follow each other.
	After   uint64 `json:"after,omitempty"`
	Entries []Item `json:"entries,omitempty"`

	// Raft are messages of raft between two voters of the recovery Log.
	Log  Recovery          `json:"log,omitzero"`
	Raft []*raftpb.Message `json:"-"`

	Requests []Request `json:"requests,omitempty"`
	Refused  []Refusal `json:"refused,omitempty"`

	// Ask is a question for a version that was current after it was asked, and
	// Answer the answer to one.
	Ask    Number  `json:"ask,omitempty"`
	Answer *Answer `json:"answer,omitempty"`

	Founding *FoundingMessage `json:"founding,omitempty"`
}

// Item is a committed entry of the log.
type Item struct {
	Index uint64 `json:"index"`
	// Entry is an entry, Voter a change of the voters. An item without both is
	// the first one of a new leader.
	Entry  []byte `json:"entry,omitempty"`
	Voter  *Voter `json:"voter,omitempty"`
	Remove bool   `json:"remove,omitempty"` // the voter
}

// Request is a command on its way to the leader.
type Request struct {
	ID Number `json:"id"`
	// Origin is the process that waits for the result.
	Origin crdt.Incarnation `json:"origin"`
	Author string           `json:"author"`
	Reason string           `json:"reason,omitempty"`
	Change
}

// Change is the content of a command. Exactly one field is set.
type Change struct {
	Region *RegionChange `json:"region,omitempty"`
	Note   *Note         `json:"note,omitempty"`
}

// Refusal is the answer of a leader to a command that it does not propose.
type Refusal struct {
	ID     Number `json:"id"`
	Reason string `json:"reason"`
}

// Answer is an answer: everything up to a version was committed before it.
type Answer struct {
	Ask     Number  `json:"ask"`
	Version Version `json:"version"`
}

// Bounds of the lists of a message.
const (
	// MaxEntries bounds the entries.
	MaxEntries = 256
	// MaxRequests bounds the commands, and the answers to them.
	MaxRequests = 64
	// MaxRaft bounds the messages of raft.
	MaxRaft = 256
)

// bytes of the entries of one message, beyond which it gets no more.
const fillBytes = 256 << 10
