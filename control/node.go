package control

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/eventlog"
)

// Node is the part of one daemon in the control log. It is a state machine
// without I/O, and not safe for concurrent use.
type Node struct {
	cfg    Config
	rng    *rand.Rand
	at     time.Duration // of the current call, monotonic
	ticked time.Duration // the latest Tick
	// wall is the clock in Unix milliseconds.
	wall int64

	self      storedSelf
	keys      keys
	former    ID // that was given up since Ready, zero for none
	rights    Rights
	address   crdt.Incarnation
	peers     []*peer            // ascending by address
	addresses []crdt.Incarnation // of peers
	leaving   bool
	led       ledBy

	record       *Record // nil before the founding
	log          []Item  // committed entries before and at the record, contiguous
	form         form
	confirmation confirmation
	diverged     bool // the record must be replaced
	formats      formats
	// abstains is why the voter of this daemon stopped until the next start,
	// empty if it did not: an entry could not be applied, or raft failed.
	abstains   string
	stopped    *raftNode // its voter, for the disk
	recovering *Record   // a recovery that is being stored
	raft       *raftNode // nil for a daemon that does not vote
	founding   founding
	requests   requests
	runs       runs
	dropped    dropped
	limits     LimitsAgent
	layouts    LayoutAgent

	emergencies emergencies
	notices     notices
	// missing is since when the daemon of a voter sends nothing.
	missing map[Number]time.Duration

	// stated is what all messages contain, see rests, and statedAt when that
	// changed or a peer came.
	stated   []byte
	statedAt time.Duration
	// statements are the latest ones of this daemon, see Message.statement.
	statements statements

	due    dues
	disk   disk
	out    []Message
	events eventlog.Log[EventKind]
}

// form holds the forms of the latest record that were needed.
type form struct {
	of         *Record
	json, sent []byte
}

// encoded returns the JSON form of a record.
func (f *form) encoded(r *Record) []byte {
	if f.of != r {
		*f = form{of: r, json: r.Encode()}
	}
	return f.json
}

// packed returns a record as it is sent.
func (f *form) packed(r *Record) []byte {
	data := f.encoded(r)
	if f.sent == nil {
		f.sent = pack(data)
	}
	return f.sent
}

// dues are the times of periodic work.
type dues struct{ compare, want, place time.Duration }

// peer is a live daemon, with the content of its latest message.
type peer struct {
	Peer
	sender  Sender
	version Version
	foreign Number        // its cluster, if that is another one
	heardAt time.Duration // -1 before its first message
	metAt   time.Duration // when it was live first
	baseAt  time.Duration // when it got the whole record
	sentAt  time.Duration // of the latest message to it
	// raftAt is when the latest message of raft was sent to it, and unanswered
	// reports that none came since.
	raftAt     time.Duration
	unanswered bool
	// stated are the statements of the peer that it may refer to, and knows is
	// the latest one of this daemon that it has.
	stated statements
	knows  uint64
}

// New returns a node. The seed must be another one at each start: its run comes
// from it, and its key if it has no state. The timers are drawn from rng.
func New(cfg Config, start *Start, seed Seed, rng *rand.Rand) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if seed == (Seed{}) {
		return nil, errors.New("control: no seed: want one of NewSeed")
	}
	n := &Node{cfg: cfg.withDefaults(), keys: keys{seed: seed}, rng: rng, missing: map[Number]time.Duration{}}
	if start == nil {
		start = &Start{}
	}
	n.self = start.self
	n.rights = Rights{node: n, heard: map[string]time.Duration{}, known: map[ID]known{}, gone: map[string]time.Duration{}, holds: start.self.Holds}
	n.record, n.log = start.record, start.log
	n.dropped = dropped{n, start.dropped}
	n.limits.begin(n, start.former)
	n.layouts.node = n
	n.emergencies = emergencies{node: n, all: start.emergencies, digest: digestOf(start.emergencies), sent: map[*peer]time.Duration{}}
	n.runs = runs{node: n, latest: map[ID]countedRun{}, doubts: map[ID]*doubt{}, dead: map[ID]string{}}
	for _, h := range start.written {
		n.runs.latest[h.ID] = countedRun{Written: h}
	}
	n.founding.node, n.formats.node = n, n
	n.founding.promise, n.founding.stored = start.founding, start.founding
	if n.self.Key.Key == nil {
		n.self.Key = n.keys.next()
	}
	n.self.Run = seed.Run()
	n.disk.number, n.disk.began = n.self.Store, n.self.Store
	self := n.self
	n.queue(stored{Self: &self})
	n.confirmation.node, n.notices.node = n, n
	n.confirmation.begin()
	n.runs.checkSelf()
	if n.former == (ID{}) && start.resumes() {
		if err := resumeRaft(n, start); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// number draws a number other than 0.
func (n *Node) number() Number { return Number(n.rng.Uint64() | 1) }

// between draws a duration.
func (n *Node) between(least, most time.Duration) time.Duration {
	return least + time.Duration(n.rng.Int64N(int64(max(1, most-least))))
}

// ID returns the id of the daemon. It changes when Ready returns a Former.
func (n *Node) ID() ID { return n.self.id() }

// Identity returns the key of the daemon, which changes as ID does, and its
// run.
func (n *Node) Identity() Identity { return Identity{n.self.Key.Key, n.self.Run} }

// Limits returns the part of the daemon in the limits of the log.
func (n *Node) Limits() *LimitsAgent { return &n.limits }

// Record returns the record, nil before the founding.
func (n *Node) Record() *Record { return n.record }

// Peers sets the live daemons, with or without this one, whose address is self.
func (n *Node) Peers(at time.Duration, self crdt.Incarnation, peers []Peer) {
	n.clock(at)
	n.address = self
	kept := make([]*peer, 0, len(peers))
	if more := len(peers) - len(n.peers); more > manyPeers {
		n.out = slices.Grow(n.out, more)
		n.rights.known, n.runs.latest = grown(n.rights.known, more), grown(n.runs.latest, more)
	}
	for _, p := range peers {
		if p.Address == self {
			continue
		}
		o := n.peer(p.Address)
		fresh := o == nil
		if fresh {
			o = &peer{heardAt: -1, metAt: at, baseAt: at - n.cfg.Heartbeat}
		}
		o.Peer = p
		kept = append(kept, o)
		if fresh {
			n.send(o, Message{}) // it learns the id
			n.statedAt = at
		}
	}
	slices.SortFunc(kept, func(a, b *peer) int { return cmp.Compare(a.Address, b.Address) })
	n.peers, n.addresses, n.led = kept, n.addresses[:0], ledBy{}
	for _, p := range kept {
		n.addresses = append(n.addresses, p.Address)
	}
}

// manyPeers is the number of new peers from which Peers makes room for them.
const manyPeers = 64

// grown returns a map with room for more.
func grown[K comparable, V any](m map[K]V, more int) map[K]V {
	out := make(map[K]V, min(len(m)+more, maxWritten))
	maps.Copy(out, m)
	return out
}

// peer returns the peer with an address, nil for none.
func (n *Node) peer(a crdt.Incarnation) *peer {
	i, ok := crdt.Search(n.addresses, a)
	if !ok {
		return nil
	}
	return n.peers[i]
}

// byID returns the live peer with an id, the latest heard one, nil for none.
func (n *Node) byID(d ID) *peer {
	var best *peer
	for _, p := range n.peers {
		if p.heardAt >= 0 && p.sender.ID == d && (best == nil || p.heardAt > best.heardAt) {
			best = p
		}
	}
	return best
}

// clock sets the time of the current call.
func (n *Node) clock(at time.Duration) { n.at, n.events.At = at, at }

// Leave makes the daemon give its vote away before it stops. All peers learn it
// at once, so that those that leave together do not wait for each other.
func (n *Node) Leave() {
	n.leaving = true
	for _, p := range n.peers {
		n.send(p, Message{})
	}
}

// Tick runs the timers. wall is the clock in Unix milliseconds.
func (n *Node) Tick(at time.Duration, wall int64) {
	n.clock(at)
	n.wall, n.ticked = wall, at
	n.found()
	n.turnRaft()
	n.dropped.turn()
	n.emergencies.turn()
	n.limits.turn()
	n.runs.turn()
	sendRequests(n)
	n.compare()
	n.confirmation.turn()
	n.place()
	n.formats.turn()
	n.layouts.turn()
	n.notices.turn()
}

// ErrUncounted is the error of Receive for a message of an id that is dead, or
// of a run that may not be the only one of its id, and for one that refers to
// what this daemon does not know. The peer then sends it.
var ErrUncounted = errors.New("control: message of a daemon that does not count")

// ErrUnknownSender is the error of Receive for a message of no live daemon.
var ErrUnknownSender = errors.New("control: message of a daemon that is no member")

// Receive handles a message of a peer.
func (n *Node) Receive(at time.Duration, wall int64, m *Message) error {
	n.clock(at)
	n.wall = wall
	p := n.peer(m.From)
	if p == nil || m.To != n.address {
		return ErrUnknownSender
	}
	if !expand(n, m, p) {
		n.send(p, Message{}) // the peer receives the version of this record
		return ErrUncounted
	}
	if n.record != nil && m.Cluster != 0 && m.Cluster != n.record.Cluster.ID {
		p.foreign = m.Cluster
		n.events.AddOnce(ForeignCluster, p.Name, m.Cluster.String(), fmt.Sprintf("cluster %v", m.Cluster))
		return nil
	}
	p.foreign = 0
	n.runs.receive(p, m)
	if !n.runs.note(p, &m.Sender) {
		return ErrUncounted
	}
	p.sender, p.version, p.heardAt, n.led = m.Sender, m.Version, at, ledBy{}
	n.rights.remember(p)
	if m.Founding != nil {
		n.receiveFounding(p, m.Founding)
	}
	receiveYield(n, p, m.Yield)
	n.follow(p, m)
	receiveRaft(n, p, m)
	receiveRequests(n, p, m)
	n.confirmation.receive(p, m)
	n.emergencies.receive(p, m)
	n.limits.turn()
	n.turnRaft()
	return nil
}

// Ready is the work of the driver.
type Ready struct {
	// Store are items to store in this order with one sync, before Stored.
	Store [][]byte
	// Messages are to be sent, best effort and in any order.
	Messages []Message
	Results  []Result
	Events   []Event
	// Former is an id that this daemon gave up, zero for none: its disk is
	// older than it was, or in use twice. Before anything else of Ready, the
	// driver moves all other files of the daemon aside, to state.former, gives
	// its streams the new key (link.Host.Renew), and logs that loudly. It goes
	// on under ID. What the control log stored stays.
	Former ID
	// Wake is the latest time of the next Tick.
	Wake time.Duration
}

// Ready returns the work that is due now. Call it after every other call, and
// again after Stored.
func (n *Node) Ready(at time.Duration) Ready {
	n.clock(at)
	r := Ready{Store: n.toStore()}
	r.Messages, n.out = n.out, nil
	var own *statement
	if len(r.Messages) > 0 {
		own = statementOf(n)
	}
	for i := range r.Messages {
		m, p := &r.Messages[i], n.peer(r.Messages[i].To)
		m.From, m.State, m.Made, m.Statement = n.address, own.State, own.Made, own.Statement
		if p != nil {
			p.sentAt = at
		}
		abridge(n, m, p)
	}
	r.Results, n.requests.results = n.requests.results, nil
	r.Events = n.events.Take()
	r.Former, n.former = n.former, ID{}
	r.Wake = n.ticked + n.cfg.Heartbeat
	return r
}

// statementOf returns the statement of a daemon, with its identity and clock.
func statementOf(n *Node) *statement {
	own := &statement{Statement: Statement{Sender: n.sender()}}
	if n.record != nil {
		own.Cluster, own.Version, own.Hash = n.record.Cluster.ID, n.record.Version, n.record.shortHash()
		if n.diverged { // nothing that follows this record is of use
			own.Version.Index = 0
		}
	}
	own.State, own.Made = n.statements.number(&own.Statement)
	return own
}

// sender describes this daemon.
func (n *Node) sender() Sender {
	s := Sender{
		ID: n.self.id(), Run: n.self.Run, Store: n.disk.number, Began: n.disk.began, Durable: n.cfg.Durable, Witness: n.cfg.Witness,
		Format: n.cfg.Format, Clock: n.wall, Leaving: n.leaving || n.abstains != "", Starting: n.Starting(), Leader: n.follows(),
	}
	s.Heard, s.HeardOf = n.rights.heardRegions()
	s.Majority = n.record != nil && n.abstains == "" && 2*n.liveVoters() > n.record.Voting() && Elects(n)
	if n.raft != nil {
		s.Applied, s.Voter = n.raft.applied, n.raft.id
	}
	if n.record != nil && n.record.Limits.Pending() != (Version{}) {
		s.Stored, s.Region = n.limits.has(), n.limits.ofRegion()
		if n.leads() {
			s.Waits = n.limits.waitsSent(n.record.Limits.Pending())
		}
	}
	if n.record != nil && len(n.record.Limits.Local) > 0 {
		s.Files = n.limits.proposals.own
	}
	s.Emergencies, s.Acceptor = n.emergencies.digest, n.layouts.own
	return s
}

// follows returns the leader that this voter follows, the zero ID without one.
// Peers receive this and no hearsay: two voters would go on for ever with a
// lost leader that each has from the other. A learner cannot campaign, so raft
// alone does not show that its leader is silent.
func (n *Node) follows() ID {
	if n.raft == nil || n.record == nil || n.raft.unled && !n.raft.leader() {
		return ID{}
	}
	s := n.record.Voter(Number(n.raft.raw.BasicStatus().Lead))
	if s == nil {
		return ID{}
	}
	return s.Daemon
}

// leader returns the leader of the log as far as this daemon knows: by its own
// vote, or by the latest message of a live leader or of another voter. In a
// large cluster nothing comes from the leader itself for minutes.
func (n *Node) leader() ID {
	if n.record == nil {
		return ID{}
	}
	if own := n.follows(); own != (ID{}) {
		return own
	}
	if l := &n.led; l.of != n.record || l.self != n.self.id() || n.at >= l.until {
		*l = ledBy{of: n.record, self: n.self.id(), until: math.MaxInt64}
		heardAt := time.Duration(-1)
		for _, p := range n.peers {
			knows := p.sender.Leader == p.sender.ID || n.record.VoterOf(p.sender.ID) != nil && p.sender.Leader != l.self
			if knows && p.version.Recovery == n.record.Version.Recovery && isLive(n, p) && p.heardAt > heardAt {
				heardAt = p.heardAt
				l.leader, l.until = p.sender.Leader, heardAt+n.cfg.patience(len(n.peers))
			}
		}
	}
	return n.led.leader
}

// ledBy is the leader by the messages of peers, until the latest of them is too
// old. The next message, and other peers, end it.
type ledBy struct {
	of     *Record // nil for none
	self   ID
	leader ID
	until  time.Duration
}

// send sends a message to a peer.
func (n *Node) send(p *peer, m Message) {
	m.To = p.Address
	n.out = append(n.out, m)
}
