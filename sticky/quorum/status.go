package quorum

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// Status is the state of an acceptor for operators.
type Status struct {
	// Layout is the layout that daemons use.
	Layout route.Layout
	// Voting reports whether the acceptor votes; Reason is why not.
	Voting     bool
	Reason     string
	Generation uint64
	Keys       int
	Stats      Stats
}

// Status returns the state of the acceptor.
func (r *Acceptor) Status() Status {
	s := Status{
		Layout: r.newest().Clone(), Generation: r.meta.Generation, Keys: len(r.records), Stats: r.stats,
	}
	s.Voting, s.Reason = r.voting()
	return s
}

// Record returns the record of a key for operators, and whether there is one.
func (r *Acceptor) Record(key crdt.Key) (sticky.Record, bool) {
	l := r.records[key]
	if l == nil {
		return sticky.Record{}, false
	}
	return l.Record, true
}

// Votes reports whether a voter of any region recently reported that it votes
// under the layout that daemons use. known is false without a recent report.
func (r *Acceptor) Votes(region, name string) (votes, known bool) {
	h, heard := r.reports[r.live.Find(region, name).ID]
	self := region == r.cfg.Region && name == r.cfg.Name
	return r.votes(region, name), self || heard && r.at-h.at < fresh
}
