package control

import (
	"go.etcd.io/raft/v3/raftpb"

	"github.com/georld/rld/control/revocation"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota/epoch"
)

// Peer is a live daemon by membership.
type Peer struct {
	Address      crdt.Incarnation // of its process, for messages
	Name, Region string
}

// Sender describes the daemon that sent a message.
type Sender struct {
	ID  ID  `json:"id,omitzero"`
	Run Run `json:"run,omitzero"`
	// Store is the number of its latest durable write, Began that of the latest
	// one before this run.
	Store   uint64 `json:"store,omitempty"`
	Began   uint64 `json:"began,omitempty"`
	Durable bool   `json:"durable,omitempty"`
	Witness bool   `json:"witness,omitempty"`
	// Applied is the index up to which its voter has applied the log.
	Applied uint64 `json:"applied,omitempty"`
	// Leaving daemons give their vote away.
	Leaving bool `json:"leaving,omitempty"`
	// Format is the newest format of records that it reads.
	Format int `json:"format,omitempty"`
	// Clock is its clock in Unix milliseconds.
	Clock int64 `json:"clock,omitempty"`
	// Heard has a bit for each region of its record, in their order, of which
	// it heard a daemon a short time ago.
	Heard Number `json:"heard,omitzero"`
	// HeardOf is a hash of the names of these regions.
	HeardOf Number `json:"heard_of,omitzero"`
	// Starting daemons do not know yet whether their record is current.
	Starting bool `json:"starting,omitempty"`
	// Leader is the leader of the control log that it follows as a voter, or
	// itself, zero for none.
	Leader ID `json:"leader,omitzero"`
	// Majority reports that a majority of the voters is live, as it hears them.
	Majority bool `json:"majority,omitempty"`
	// Stored is the version that it has stored and whose limits it uses, and
	// Region the one that all daemons of its region have that may hold rights.
	// Both are zero while no limits are pending.
	Stored Version `json:"stored,omitzero"`
	Region Version `json:"region,omitzero"`
	// Waits names the regions and daemons that pending limits wait for, at most
	// MaxWaits, in messages of the leader.
	Waits []string `json:"waits,omitempty"`
	// Files is a hash of the files of its limits that it proposes, 0 for none.
	Files Number `json:"files,omitzero"`
	// Emergencies is a hash of the emergency overrides that it has, 0 for none.
	Emergencies Number `json:"emergencies,omitzero"`
	// Acceptor is the state of its acceptor, nil for a daemon without one.
	Acceptor *AcceptorReport `json:"acceptor,omitempty"`
}

// Message is a message between the nodes of two daemons. Each one carries the
// version of its sender, by which the receiver learns that it lags and asks, or
// that the sender does.
type Message struct {
	From, To crdt.Incarnation `json:"-"`

	Sender  Sender  `json:"sender,omitzero"`
	Cluster Number  `json:"cluster,omitzero"` // 0 before the founding
	Version Version `json:"version,omitzero"`
	Hash    string  `json:"hash,omitempty"` // of the record of Version
	// Want requests the entries, or the record, that the sender lacks.
	Want bool `json:"want,omitempty"`

	// Base is the record of the sender, for a receiver that lags far behind.
	Base []byte `json:"-"`
	// Log is the recovery that Entries and Raft belong to.
	Log Recovery `json:"log,omitzero"`
	// Entries are committed entries that follow each other.
	Entries []Item `json:"entries,omitempty"`
	// Raft are messages of raft between two voters.
	Raft []*raftpb.Message `json:"-"`

	Requests []Request `json:"requests,omitempty"`

	// Ask is a question for a version that was current after it was asked, and
	// Answer the answer to one.
	Ask    Number  `json:"ask,omitempty"`
	Answer *Answer `json:"answer,omitempty"`

	// Nonce asks the receiver to prove that it is live, and Proof does.
	Nonce *Nonce `json:"nonce,omitempty"`
	Proof *Proof `json:"proof,omitempty"`
	// Ended is a notice that the id of the receiver is dead.
	Ended *Ended `json:"ended,omitempty"`

	Founding *FoundingMessage `json:"founding,omitempty"`

	// Yield gives the recovery of the sender up.
	Yield *Yield `json:"yield,omitempty"`

	// Emergencies are the emergency overrides of the sender.
	Emergencies []Emergency `json:"emergencies,omitempty"`
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
	ID     Number `json:"id"`
	Author string `json:"author"`
	Reason string `json:"reason,omitempty"`
	Change
}

// Change is the content of a command. Exactly one field is set.
type Change struct {
	Region *RegionChange `json:"region,omitempty"`
	Note   *Note         `json:"note,omitempty"`
	// Dropped names a command that a recovery dropped.
	Dropped *Command `json:"dropped,omitempty"`

	Limits *LimitsChange `json:"limits,omitempty"`
	// Dead declares an id dead. The leader sets its times.
	Dead *DeadID `json:"dead,omitempty"`
	// Epoch has other shares of rules than the newest epoch of regions.
	Epoch *epoch.Epoch `json:"epoch,omitempty"`
	// Layouts changes the layouts of strict keys. The leader submits all but
	// the Recover of an operator.
	Layouts *LayoutChange `json:"layouts,omitempty"`
	// Format changes the format of the record, or the state of the next one.
	Format *FormatChange `json:"change_format,omitempty"`
	// Revoke changes the revoked daemons, since format 2.
	Revoke *revocation.Change `json:"revoke,omitempty"`
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
	// MaxRequests bounds the commands.
	MaxRequests = 64
	// MaxRaft bounds the messages of raft.
	MaxRaft = 256
)

// bytes of the entries of one message, beyond which it gets no more.
const fillBytes = 256 << 10
