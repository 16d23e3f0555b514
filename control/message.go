package control

import (
	"cmp"
	"slices"

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
	// Majority reports that a majority of the voters is live, as the sender
	// receives their messages, and can elect a leader.
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
	// Voter is the id of its voter in raft, 0 without one.
	Voter Number `json:"voter,omitempty"`
}

// Message is a message between the nodes of two daemons. Each one carries the
// version of its sender, by which the receiver learns that it lags and asks, or
// that the sender does.
type Message struct {
	From, To crdt.Incarnation `json:"-"`

	// State is the number of the statement of the sender, see statement. Known
	// is that of the latest statement of the receiver that the sender has, 0
	// for none.
	State, Known uint64 `json:"-"`
	// Since is the number of a statement that the receiver has, 0 for none. A
	// frame then contains the parts in Changed alone; Receive adds the others.
	Since   uint64 `json:"-"`
	Changed Parts  `json:"-"`
	// Age is for how long the statement has been the same, in milliseconds, 0
	// if the receiver has it. With Since, Sender.Clock begins when that
	// statement was made.
	Age int64 `json:"-"`
	// ToVoter is the voter of the receiver in the statement Known. It is not
	// sent: a message of raft from Sender.Voter to it is sent without the two,
	// and Receive adds them.
	ToVoter Number `json:"-"`
	// Made is the clock of the sender when its statement was made. It is not
	// sent, either.
	Made int64 `json:"-"`

	Statement
	// Want requests the entries, or the record, that the sender lacks.
	Want bool `json:"want,omitempty"`

	// Base is the record of the sender, for a receiver that lags far behind.
	Base []byte `json:"-"`
	// Log is the recovery that Entries and Raft belong to. It is not sent where
	// it is that of Version, and Receive adds it.
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

// Statement is what each message states about its sender and its record.
type Statement struct {
	Sender  Sender  `json:"sender,omitzero"`
	Cluster Number  `json:"cluster,omitzero"` // 0 before the founding
	Version Version `json:"version,omitzero"`
	Hash    uint32  `json:"-"` // of the record of Version, see shortHash
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

// Parts is a set of the parts of a statement.
type Parts uint32

// part is a part of a statement.
type part struct {
	equal func(a, b *Statement) bool
	copy  func(to, from *Statement)
}

func partOf[T comparable](of func(*Statement) *T) part {
	return part{
		func(a, b *Statement) bool { return *of(a) == *of(b) },
		func(to, from *Statement) { *of(to) = *of(from) },
	}
}

// acceptorPart is the state of the acceptor. One with a layout that is unknown
// to others is new in each message.
var acceptorPart = part{
	func(a, b *Statement) bool {
		x, y := a.Sender.Acceptor, b.Sender.Acceptor
		if x == nil || y == nil || x.Unknown != nil || y.Unknown != nil {
			return x == y
		}
		return *x == *y
	},
	func(to, from *Statement) { to.Sender.Acceptor = from.Sender.Acceptor },
}

// parts are those of a statement, in the order of their bits in Parts. Those
// that change most often are first.
var parts = []part{
	partOf(func(m *Statement) *uint64 { return &m.Sender.Store }),
	partOf(func(m *Statement) *uint64 { return &m.Version.Index }),
	partOf(func(m *Statement) *uint32 { return &m.Hash }),
	partOf(func(m *Statement) *uint64 { return &m.Sender.Applied }),
	partOf(func(m *Statement) *Number { return &m.Sender.Heard }),
	partOf(func(m *Statement) *ID { return &m.Sender.Leader }),
	partOf(func(m *Statement) *bool { return &m.Sender.Majority }),
	partOf(func(m *Statement) *bool { return &m.Sender.Starting }),
	partOf(func(m *Statement) *bool { return &m.Sender.Leaving }),
	partOf(func(m *Statement) *Number { return &m.Sender.HeardOf }),
	partOf(func(m *Statement) *Version { return &m.Sender.Stored }),
	partOf(func(m *Statement) *Version { return &m.Sender.Region }),
	acceptorPart,
	partOf(func(m *Statement) *Number { return &m.Sender.Files }),
	partOf(func(m *Statement) *Number { return &m.Sender.Emergencies }),
	partOf(func(m *Statement) *Number { return &m.Sender.Voter }),
	partOf(func(m *Statement) *uint64 { return &m.Sender.Began }),
	partOf(func(m *Statement) *bool { return &m.Sender.Durable }),
	partOf(func(m *Statement) *bool { return &m.Sender.Witness }),
	partOf(func(m *Statement) *int { return &m.Sender.Format }),
	partOf(func(m *Statement) *Number { return &m.Cluster }),
	partOf(func(m *Statement) *Recovery { return &m.Version.Recovery }),
}

// AllParts are the parts that exist.
var AllParts = Parts(1)<<len(parts) - 1

// changed returns the parts in which two statements differ.
func changed(a, b *Statement) (all Parts) {
	for i, p := range parts {
		if !p.equal(a, b) {
			all |= 1 << i
		}
	}
	return all
}

// complete takes all parts but those of a set from another statement.
func (m *Statement) complete(from *Statement, but Parts) {
	for i, p := range parts {
		if but&(1<<i) == 0 {
			p.copy(m, from)
		}
	}
}

// Without returns the message as its frame contains it: without the parts that
// did not change. If that is all of it, it is the message itself.
func (m *Message) Without() *Message {
	if m.Since == 0 && (m.Log == Recovery{} || m.Log != m.Version.Recovery) {
		return m
	}
	less := *m
	if less.Log == m.Version.Recovery {
		less.Log = Recovery{}
	}
	if m.Since != 0 {
		less.complete(&noStatement, m.Changed)
	}
	return &less
}

// OnlyChanged reports whether a message has no parts that did not change.
func (m *Message) OnlyChanged() bool {
	for i, p := range parts {
		if m.Since != 0 && m.Changed&(1<<i) == 0 && !p.equal(&m.Statement, &noStatement) {
			return false
		}
	}
	return true
}

// statement is all that each message of a daemon contains beside its identity
// and its clock, with the number and the time of the first message with it: see
// Message.State and Made.
//
// Statements are numbered. A message names the latest one that its sender has
// of the receiver. The receiver then sends what changed since, and no more.
type statement struct {
	State uint64
	Made  int64
	Statement
}

// numbered returns the statement with a number that was made at a time.
func (m *Statement) numbered(state uint64, made int64) statement {
	s := statement{state, made, *m}
	s.Sender.ID, s.Sender.Run, s.Sender.Clock, s.Sender.Waits = ID{}, Run{}, 0, nil
	return s
}

// noStatement is the statement without parts.
var noStatement Statement

// statements are some of one daemon, ascending by State.
type statements []statement

// Bounds of the statements that are kept.
const (
	ownStatements  = 64
	peerStatements = 8
)

// find returns the statement with a number, nil for none.
func (s statements) find(state uint64) *statement {
	for i := range s {
		if s[i].State == state && state != 0 {
			return &s[i]
		}
	}
	return nil
}

// latest returns the number of the latest one, 0 for none.
func (s statements) latest() uint64 {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1].State
}

// number returns the number of the statement of this daemon, and when it was
// made.
func (s *statements) number(m *Statement) (state uint64, made int64) {
	last := s.find(s.latest())
	if last != nil && changed(m, &last.Statement) == 0 && (last.Made != 0 || m.Sender.Clock == 0) {
		return last.State, last.Made
	}
	state, made = s.latest()+1, m.Sender.Clock
	*s = append(slices.Delete(*s, 0, max(0, len(*s)+1-ownStatements)), m.numbered(state, made))
	return state, made
}

// add keeps the statement of a peer in m, and the one that it refers to.
func (s *statements) add(m *Message) {
	i, known := slices.BinarySearchFunc(*s, m.State, func(o statement, state uint64) int { return cmp.Compare(o.State, state) })
	if known || m.State == 0 {
		return
	}
	*s = slices.Insert(*s, i, m.numbered(m.State, m.Made))
	if len(*s) > peerStatements {
		oldest := 0
		if (*s)[0].State == m.Since {
			oldest = 1
		}
		*s = slices.Delete(*s, oldest, oldest+1)
	}
}

// abridge prepares a message to a peer that may be nil, which contains the
// statement of this daemon.
func abridge(n *Node, m *Message, p *peer) {
	if p == nil {
		return
	}
	if m.Known = p.stated.latest(); m.Known != 0 {
		m.ToVoter = p.stated[len(p.stated)-1].Sender.Voter
	}
	base := n.statements.find(p.knows)
	if base != nil {
		m.Since, m.Changed = base.State, changed(&m.Statement, &base.Statement)
	}
	if m.State != m.Since {
		m.Age = m.Sender.Clock - m.Made
	}
	if base != nil {
		m.Sender.Clock -= base.Made
	}
}

// expand adds to a message of a peer what its frame did not contain. It
// returns false if it is unknown here.
func expand(n *Node, m *Message, p *peer) bool {
	p.knows = m.Known
	if m.Since != 0 {
		base := p.stated.find(m.Since)
		if base == nil {
			return false
		}
		m.complete(&base.Statement, m.Changed)
		m.Sender.Clock += base.Made
	}
	m.Made = m.Sender.Clock - m.Age
	p.stated.add(m)
	if m.Log == (Recovery{}) {
		m.Log = m.Version.Recovery
	}
	for _, r := range m.Raft {
		if r.GetFrom() == 0 {
			r.From = new(uint64(m.Sender.Voter))
		}
		if r.GetTo() == 0 {
			own := n.statements.find(m.Known)
			if own == nil {
				return false
			}
			r.To = new(uint64(own.Sender.Voter))
		}
	}
	return true
}
