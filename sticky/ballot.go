package sticky

import "github.com/georld/rld/crdt"

// Ballot orders the owners of a key as in Paxos: the greater one prevails.
type Ballot struct {
	Round uint64 // at most MaxRound
	Owner crdt.Incarnation
	// Term counts the proposers that Owner has started, so that a proposer
	// which forgot a key and starts again differs from the earlier one.
	Term uint64
}

// MaxRound bounds the rounds of ballots. A ballot of the greatest round could
// never be outvoted.
const MaxRound = 1 << 62

// Less reports whether b is below o.
func (b Ballot) Less(o Ballot) bool {
	if b.Round != o.Round {
		return b.Round < o.Round
	}
	return b.Owner < o.Owner || b.Owner == o.Owner && b.Term < o.Term
}

// SameProposer reports whether one proposer made both ballots. It then knows
// all watermarks accepted under either.
func (b Ballot) SameProposer(o Ballot) bool {
	return b.Owner == o.Owner && b.Term == o.Term && b.Owner != 0
}
