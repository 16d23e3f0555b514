package lease

import "github.com/georld/rld/sticky"

// Stats counts the work of a table since its start.
type Stats struct {
	// Entries is the number of entries now.
	Entries int
	// Local counts hits that were decided at once, Waited calls that had to
	// wait for a grant.
	Local, Waited uint64
	// Requests, Grants and Denials count messages sent: requests to owners, and
	// the answers of this one. Cached counts hits denied by an earlier denial.
	Requests, Grants, Denials, Cached uint64
	// Granted is the sum of the rights this owner granted, Returned of those
	// that this lessee returned.
	Granted, Returned uint64
	// Replayed counts requests that had been answered before, Refused those
	// that could not be answered, by reason. Rejected counts items of other
	// keys, windows or daemons.
	Replayed, Rejected uint64
	Refused            [sticky.MaxReason + 1]uint64
	// Accepts counts messages to voters, Accepted watermarks that a majority
	// stored, and Lost the ballots lost to another owner.
	Accepts, Accepted, Lost uint64
}

// Add adds the numbers of another table.
func (s *Stats) Add(o Stats) {
	s.Entries += o.Entries
	s.Local += o.Local
	s.Waited += o.Waited
	s.Requests += o.Requests
	s.Grants += o.Grants
	s.Denials += o.Denials
	s.Cached += o.Cached
	s.Granted += o.Granted
	s.Returned += o.Returned
	s.Replayed += o.Replayed
	s.Rejected += o.Rejected
	for i := range s.Refused {
		s.Refused[i] += o.Refused[i]
	}
	s.Accepts += o.Accepts
	s.Accepted += o.Accepted
	s.Lost += o.Lost
}

// Stats returns the numbers of now.
func (t *Table) Stats() Stats {
	s := t.stats
	s.Entries = len(t.all)
	return s
}
