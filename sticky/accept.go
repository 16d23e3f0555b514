package sticky

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky/route"
)

// Accept asks a strict voter to store watermarks under the owner's ballot: the
// accept message of Paxos.
type Accept struct {
	Key    crdt.Key
	Ballot Ballot
	// Seq is the proposer's number of the attempt and comes back in Accepted.
	Seq uint64
	// Known is the consumption by other owners that the proposer counts. A
	// voter that holds more under a lower ballot refuses.
	Known      Watermarks
	Watermarks Watermarks
	// Generations are the store numbers of voters in former answers. A voter
	// without its own one has a disk that is older than it was.
	Generations route.Generations
}

// Accepted is a strict voter's answer to an Accept.
type Accepted struct {
	Key    crdt.Key
	Ballot Ballot // of the Accept
	Seq    uint64 // of the Accept
	// Voter is the NameHash of the voter.
	Voter uint64
	// OK reports that the voter has the watermarks on disk under the ballot.
	OK     bool
	Reason Reason
	// Promised and Held are the voter's ballot and watermarks when it refused.
	Promised Ballot
	Held     Watermarks
	// Shared reports that Held may have the watermarks of other keys: the voter
	// has no room for a record of each.
	Shared bool
	// Generations are the store numbers of the region's voters as this voter
	// knows them, its own with the write of the vote among them. A vote of an
	// earlier disk of its voter does not count beside this one.
	Generations route.Generations
}
