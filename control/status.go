package control

import "fmt"

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
	// Abstains is why the voter of this daemon stopped, empty if it did not.
	Abstains string
	// Unreported counts the dropped commands that the record does not name yet.
	Unreported int
	// Pending is the version of limits that are not in force, zero for none.
	// Waits names the regions, and their daemons, that have not acknowledged
	// it, at the leader of the log.
	Pending Version
	Waits   []string
	// Failing is the error of the latest store, empty after a success.
	Failing string
}

// Status returns the current state.
func (n *Node) Status() Status {
	s := Status{ID: n.self.ID, Votes: n.raft != nil, Leads: n.leads(), Leader: n.leader(), Starting: n.Starting(), Abstains: n.abstains, Unreported: len(n.dropped.all)}
	if n.disk.failing != nil {
		s.Failing = n.disk.failing.Error()
	}
	if n.record == nil {
		return s
	}
	s.Version, s.Hash = n.record.Version, n.record.Hash()
	if s.Pending = n.record.Limits.Pending(); s.Leads && s.Pending != (Version{}) {
		s.Waits = n.limits.waits(s.Pending)
	}
	return s
}

// String returns the state in one line.
func (s Status) String() string {
	return fmt.Sprintf("version %v, hash %s, votes %v, leads %v, leader %v, starting %v", s.Version, s.Hash, s.Votes, s.Leads, s.Leader, s.Starting)
}
