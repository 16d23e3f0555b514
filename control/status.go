package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/internal/eventlog"
)

// Status is the state of a node for status pages.
type Status struct {
	ID      ID
	Version Version
	// Hash is that of the record, empty before the founding.
	Hash string
	// Votes reports whether the daemon has a voter, Leads whether it leads the
	// log, and Leader is the leader as far as it knows.
	Votes, Leads bool
	Leader       ID
	// Unelectable reports that a majority of the voters is live, and cannot
	// elect a leader, see Elects.
	Unelectable bool
	Starting    bool
	// Cut reports that nobody confirms the record of the starting daemon.
	Cut bool
	// Diverged reports that the record differs from that of the leader, and
	// will be replaced. Founding reports that a founding is under way here.
	Diverged, Founding bool
	// HandsOver reports that this daemon leaves, and that another one takes its
	// vote, or its strict vote.
	HandsOver bool
	// Unread is the format of the record of the cluster if this daemon cannot
	// read it, else 0. Reads is the newest format that it reads, and Behind are
	// the daemons that read none after that of the record, as Region/Name.
	Unread, Reads int
	Behind        []string
	// RaisedAt is when the record gets Record.Next.Format at the earliest, in
	// Unix milliseconds.
	RaisedAt int64
	// Peers are the live daemons but this one, ascending by address.
	Peers []PeerStatus
	// Abstains is why the voter of this daemon stopped, empty if it did not.
	Abstains string
	// Settled reports that the newest epoch of regions is settled, as the
	// rights agent of this daemon knows.
	Settled bool
	// Unreported counts the dropped commands that the record does not name yet.
	Unreported int
	// Pending is the version of limits that are not in force, zero for none.
	// Waits names the regions, and their daemons, that have not acknowledged
	// it, as the leader of the log knows them: of another daemon, in its latest
	// message (LimitsAgent.Ask). Used is the version whose limits decide the
	// calls of this daemon.
	Pending, Used Version
	Waits         []string
	// Failing is the error of the latest store, empty after a success.
	Failing string
}

// Status returns the current state.
func (n *Node) Status() Status {
	s := Status{ID: n.self.id(), Votes: n.raft != nil, Leads: n.leads(), Leader: n.leader(), Starting: n.Starting(), Cut: n.Cut(), Abstains: n.abstains, Unreported: len(n.dropped.all)}
	s.Diverged, s.Founding = n.diverged, n.record == nil && n.founding.asked != nil
	s.HandsOver, s.Peers = handsOver(n) || n.layouts.handsOver(), peerStatus(n)
	s.Unread, s.Reads, s.Behind = n.formats.unread, n.cfg.Format, n.formats.behind()
	if n.disk.failing != nil {
		s.Failing = n.disk.failing.Error()
	}
	if n.record == nil {
		return s
	}
	if newest, err := n.record.Newest(); err == nil {
		s.Settled = !n.rights.settled.Before(newest.ID)
	}
	s.Unelectable = 2*n.liveVoters() > n.record.Voting() && !Elects(n)
	s.RaisedAt = n.record.Next.Since + n.cfg.FormatAfter.Milliseconds()
	s.Version, s.Hash, s.Used = n.record.Version, n.record.Hash(), n.limits.used
	if s.Pending = n.record.Limits.Pending(); s.Pending == (Version{}) {
		return s
	}
	if s.Leads {
		s.Waits = n.limits.waits(s.Pending)
	} else if p := n.byID(s.Leader); p != nil && p.version.Recovery == s.Pending.Recovery && p.version.Index >= s.Pending.Index {
		s.Waits = p.sender.Waits
	}
	return s
}

// PeerStatus is a live daemon as its latest message describes it.
type PeerStatus struct {
	Peer
	// Age is the time since that message, negative before the first one. The
	// fields below are then zero.
	Age     time.Duration
	Sender  Sender
	Version Version
	// Live reports that the message is not older than those of live daemons.
	Live bool
	// Foreign is its cluster, if that is another one. Split reports that it has
	// another recovery of the number here.
	Foreign Number
	Split   bool
}

// peerStatus returns the live daemons but this one.
func peerStatus(n *Node) []PeerStatus {
	all := make([]PeerStatus, len(n.peers))
	for i, p := range n.peers {
		all[i] = PeerStatus{Peer: p.Peer, Age: -1, Sender: p.sender, Version: p.version, Foreign: p.foreign}
		if p.heardAt >= 0 {
			all[i].Age = n.at - p.heardAt
			all[i].Live = all[i].Age < n.cfg.patience(len(n.peers))
			all[i].Split = split(n, p)
		}
	}
	return all
}

// String returns the state in one line.
func (s Status) String() string {
	return fmt.Sprintf("version %v, hash %s, votes %v, leads %v, leader %v, starting %v", s.Version, s.Hash, s.Votes, s.Leads, s.Leader, s.Starting)
}

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
	// OldDisk: the state of this daemon is older than its own messages, or
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
	// FormatRaised: the record has another format. Text names it.
	FormatRaised

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
		"quorum lost", "quorum regained", "generation begun", "generation ended", "override expired", "resumed", "format raised",
	)
}

// Event is something that happened in a node, for logs and metrics.
type Event = eventlog.Event[EventKind]

// notices turns changes of the state into events: of the quorum, and of
// overrides that end.
type notices struct {
	node *Node
	// led is when a leader was known, or when the node began to look; lost
	// reports that its absence is an event already.
	led         time.Duration
	looks, lost bool
	// seen is the greatest clock of a look at the overrides: those that ended
	// before the start are no events.
	seen int64
}

// leaderless is how long no leader is known before that is an event, in least
// election timeouts: a few elections may fail.
const leaderless = 5

// look is the time between two looks at the overrides, in milliseconds.
const look = 1_000

// turn looks at the state.
func (x *notices) turn() {
	n := x.node
	if n.record == nil || !x.looks {
		x.led, x.seen, x.looks = n.at, n.wall, true
		return
	}
	switch known := n.leader() != (ID{}); {
	case known && x.lost:
		n.events.Add(QuorumRegained, "", fmt.Sprintf("a leader is known, %s", n.votersText()))
		x.led, x.lost = n.at, false
	case known:
		x.led = n.at
	case !x.lost && n.at-x.led >= leaderless*n.cfg.election():
		n.events.Add(QuorumLost, "", fmt.Sprintf("no leader is known for %s, %s", n.at-x.led, n.votersText()))
		x.lost = true
	}
	x.expire()
}

// expire makes an event of each override that ended since the last look, and
// that no command ended.
func (x *notices) expire() {
	n, from := x.node, x.seen
	if n.wall < from+look {
		return
	}
	x.seen = n.wall
	for i := range n.record.Limits.Overrides {
		o := &n.record.Limits.Overrides[i]
		if o.Ended == nil && !o.Reset && o.Until > from && o.Until <= n.wall {
			n.events.Add(OverrideExpired, "", fmt.Sprintf("%v of version %v had %v until %s", &o.Target, o.Version, &o.Setting, when(o.Until)))
		}
	}
}

// votersText describes how many voters are live.
func (n *Node) votersText() string {
	return fmt.Sprintf("%d of %d voters are live", n.liveVoters(), n.record.Voting())
}

// liveVoters returns how many voters are live, as this daemon knows.
func (n *Node) liveVoters() int {
	live := 0
	for _, v := range n.record.Voters {
		p := n.byID(v.Daemon)
		if !v.Learner && (v.Daemon == n.self.id() || isLive(n, p)) {
			live++
		}
	}
	return live
}

// Elects reports whether the voters can elect a leader: a majority of those
// that raft counts is live at this daemon. They may be others than those of the
// record: raft counts a voter until its removal is known to be committed, and a
// new one from then on. Only voters know which ones count. A daemon without a
// voter uses their statements when it has known no leader for some time.
func Elects(n *Node) bool {
	v := n.raft
	if v == nil || v.conf == nil {
		return !n.notices.lost || slices.ContainsFunc(n.peers, func(p *peer) bool {
			votes := p.sender.Voter != 0 && p.version.Recovery == n.record.Version.Recovery
			return votes && p.sender.Majority && isLive(n, p)
		})
	}
	live := 0
	for _, id := range v.conf.GetVoters() {
		d := v.daemons[Number(id)]
		p := n.byID(d)
		if d == n.self.id() || isLive(n, p) {
			live++
		}
	}
	return 2*live > len(v.conf.GetVoters())
}

// compare makes events of a later format, and of the generations of regions
// that the next record has and the one here does not, and the other way round.
func (x *notices) compare(next *Record) {
	n := x.node
	if n.record == nil {
		return // Begun
	}
	if next.Format > n.record.Format {
		n.events.Add(FormatRaised, "", fmt.Sprintf("the record has format %d", next.Format))
	}
	lacks := func(r *Record, g Region) bool {
		return !slices.ContainsFunc(r.Regions, func(o Region) bool { return o.Name == g.Name && o.Generation == g.Generation })
	}
	for _, g := range n.record.Regions {
		if lacks(next, g) {
			n.events.Add(GenerationEnded, "", fmt.Sprintf("region %s since version %v", g.Name, g.Generation))
		}
	}
	for _, g := range next.Regions {
		if lacks(n.record, g) {
			n.events.Add(GenerationBegun, "", fmt.Sprintf("region %s since version %v, with %d daemons", g.Name, g.Generation, len(g.Founders)))
		}
	}
}
