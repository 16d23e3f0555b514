package control

import (
	"fmt"
	"time"
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
	Starting     bool
	// Cut reports that nobody confirms the record of the starting daemon.
	Cut bool
	// Diverged reports that the record differs from that of the leader, and
	// will be replaced. Founding reports that a founding is under way here.
	Diverged, Founding bool
	// HandsOver reports that this daemon leaves, and that another one takes its
	// vote.
	HandsOver bool
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
	s.HandsOver, s.Peers = handsOver(n), peerStatus(n)
	if n.disk.failing != nil {
		s.Failing = n.disk.failing.Error()
	}
	if n.record == nil {
		return s
	}
	if newest, err := n.record.Newest(); err == nil {
		s.Settled = !n.rights.settled.Before(newest.ID)
	}
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
			here, there := n.record, p.version.Recovery
			all[i].Split = here != nil && there != here.Version.Recovery && there.Number == here.Version.Recovery.Number && p.version.Index > 0
		}
	}
	return all
}

// String returns the state in one line.
func (s Status) String() string {
	return fmt.Sprintf("version %v, hash %s, votes %v, leads %v, leader %v, starting %v", s.Version, s.Hash, s.Votes, s.Leads, s.Leader, s.Starting)
}
