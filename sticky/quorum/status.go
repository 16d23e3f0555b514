package quorum

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// Status is a replica as people see it.
type Status struct {
	// Layout is the one that daemons go by; Number the one the replica votes
	// under, 0 when it does not.
	Layout route.Layout
	Number uint64
	Voters []VoterStatus
	// Voting says that the replica votes, Reason else why not.
	Voting bool
	Reason    string
	// Lone says that the loss of one replica of the region leaves no majority.
	Lone       bool
	Generation uint64
	Ledgers    int
	// Ended is the instant before which ended marks are forgotten, in Unix
	// milliseconds.
	Ended int64
	Stats Stats
}

// VoterStatus is a replica of the own region.
type VoterStatus struct {
	Name        string
	Incarnation crdt.Incarnation // 0 when it is not live
	// Voting is what it said last.
	Voting bool
}

// Status returns how the replica is.
func (r *Acceptor) Status() Status {
	s := Status{
		Layout: r.newest().Clone(), Generation: r.meta.Generation, Ledgers: len(r.records), Ended: r.meta.Ended, Stats: r.stats,
	}
	if s.Voting, s.Reason = r.voting(); s.Voting {
		s.Number = r.layout.Number
	}
	for _, voter := range r.routing.Voters() {
		s.Voters = append(s.Voters, VoterStatus{voter.Name, voter.Incarnation, r.votes(r.cfg.Region, voter.Name)})
	}
	s.Lone = len(s.Voters) < 3
	return s
}

// Record returns what is held of a ledger, and whether anything is: for
// operators.
func (r *Acceptor) Record(key crdt.Key) (sticky.Record, bool) {
	l := r.records[key]
	if l == nil {
		return sticky.Record{}, false
	}
	return sticky.Record{Key: key, Ballot: l.ballot, Watermarks: l.watermarks, Ended: l.ended}, true
}

// Votes reports whether a replica of any region said of late that it votes under
// the layout that daemons go by; known is false when nothing was heard of it.
func (r *Acceptor) Votes(region, name string) (votes, known bool) {
	h, heard := r.reports[r.live.Find(region, name).ID]
	self := region == r.cfg.Region && name == r.cfg.Name
	return r.votes(region, name), self || heard && r.at-h.at < fresh
}
