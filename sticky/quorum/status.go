package quorum

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// Status is the state of an acceptor for operators.
type Status struct {
	// Layout is the layout that daemons use. Number is that of the layout the
	// acceptor votes under, 0 if it does not vote.
	Layout route.Layout
	Number uint64
	Voters []VoterStatus
	// Voting reports whether the acceptor votes; Reason is why not.
	Voting bool
	Reason string
	// Lone reports that the loss of one voter leaves the region no majority.
	Lone       bool
	Generation uint64
	Keys       int
	// Ended is the instant before which ended watermarks are forgotten, in Unix
	// milliseconds.
	Ended int64
	Stats Stats
}

// VoterStatus is a strict voter of the own region.
type VoterStatus struct {
	Name        string
	Incarnation crdt.Incarnation // 0 when it is not live
	// Voting is its last report.
	Voting bool
}

// Status returns the state of the acceptor.
func (r *Acceptor) Status() Status {
	s := Status{
		Layout: r.newest().Clone(), Generation: r.meta.Generation, Keys: len(r.records), Ended: r.meta.Ended, Stats: r.stats,
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

// Record returns the record of a key for operators, and whether there is one.
func (r *Acceptor) Record(key crdt.Key) (sticky.Record, bool) {
	l := r.records[key]
	if l == nil {
		return sticky.Record{}, false
	}
	return sticky.Record{Key: key, Ballot: l.ballot, Watermarks: l.watermarks, Ended: l.ended}, true
}

// Votes reports whether a voter of any region recently reported that it votes
// under the layout that daemons use. known is false without a recent report.
func (r *Acceptor) Votes(region, name string) (votes, known bool) {
	h, heard := r.reports[r.live.Find(region, name).ID]
	self := region == r.cfg.Region && name == r.cfg.Name
	return r.votes(region, name), self || heard && r.at-h.at < fresh
}
