package sticky

import "github.com/georld/rld/crdt"

// Status is a replica as people see it.
type Status struct {
	// Layout is the one that daemons go by; Number the one the replica votes
	// under, 0 when it does not.
	Layout Layout
	Number uint64
	Seats  []SeatStatus
	// Voting says that the replica votes, Why else why not.
	Voting bool
	Why    string
	// Lone says that the loss of one replica of the region leaves no majority.
	Lone    bool
	Life    uint64
	Ledgers int
	// Ended is the instant before which ended marks are forgotten, in Unix
	// milliseconds.
	Ended int64
	Stats Stats
}

// SeatStatus is a replica of the own region.
type SeatStatus struct {
	Name string
	Slot crdt.Slot // 0 when it is not live
	// Voting is what it said last.
	Voting bool
}

// Status returns how the replica is.
func (r *Replica) Status() Status {
	s := Status{
		Layout: r.newest().Clone(), Life: r.meta.Life, Ledgers: len(r.records), Ended: r.meta.Ended, Stats: r.stats,
	}
	if s.Voting, s.Why = r.voting(); s.Voting {
		s.Number = r.layout.Number
	}
	for _, seat := range r.view.seats {
		s.Seats = append(s.Seats, SeatStatus{seat.Name, seat.Slot, r.votes(r.cfg.Region, seat.Name)})
	}
	s.Lone = len(s.Seats) < 3
	return s
}

// Record returns what is held of a ledger, and whether anything is: for
// operators.
func (r *Replica) Record(key crdt.Key) (Record, bool) {
	l := r.records[key]
	if l == nil {
		return Record{}, false
	}
	return Record{key, l.ballot, l.marks, l.ended}, true
}

// Votes reports whether a replica of any region said of late that it votes under
// the layout that daemons go by; known is false when nothing was heard of it.
func (r *Replica) Votes(region, name string) (votes, known bool) {
	h, heard := r.heard[find(r.live, region, name).ID]
	self := region == r.cfg.Region && name == r.cfg.Name
	return r.votes(region, name), self || heard && r.at-h.at < fresh
}
