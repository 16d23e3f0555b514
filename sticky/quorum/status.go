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
	// Active is the number of the active layout, 0 for none. Lost reports that
	// the acceptor lost the state that it had as a voter.
	Active uint64
	Lost   bool
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
	s.Active, s.Lost = r.active.Number, r.isVoter(r.newest()) && r.lost()
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
