package sticky

import (
	"fmt"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky/route"
)

// SnapshotRequest asks an acceptor for its next snapshot chunk. The same
// message carries the layout that the copy is for.
type SnapshotRequest struct {
	// Voter and Generation are the NameHash and store number of the requester.
	Voter, Generation uint64
	// Number is the layout that the requester is to vote under. An acceptor
	// whose layout is the one before seals it first: it never votes under it
	// again. With 0 the request is for the Generations alone.
	Number uint64
	// After is the last key of the chunk before. Begin asks for the first one.
	After crdt.Key
	Begin bool
}

// SnapshotChunk is an acceptor's answer to a SnapshotRequest.
type SnapshotChunk struct {
	Voter   uint64 // NameHash of the acceptor
	Number  uint64 // of the request
	After   crdt.Key
	Begin   bool
	Reason  Reason // set when it cannot answer; then the rest is empty
	Records []Record
	Last    bool
	// Ended is the acceptor's: watermarks that ended before it are forgotten.
	Ended       int64
	Generations route.Generations
}

// Record is the state of one key at an acceptor.
type Record struct {
	Key        crdt.Key
	Ballot     Ballot // promised; Owner is 0 if a snapshot advanced it
	Watermarks Watermarks
	// Ended is the instant before which ended watermarks of this key were
	// forgotten, in Unix milliseconds. Accepts of them are refused.
	Ended int64
}

// Validate returns an error for a record that no acceptor can have.
func (r *Record) Validate() error {
	if r.Ballot.Round > MaxRound+1 {
		return fmt.Errorf("record of round %d: want at most %d", r.Ballot.Round, uint64(MaxRound))
	}
	if err := r.Watermarks.Validate(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
