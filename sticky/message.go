package sticky

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/sticky/route"
)

// Message is all that one daemon sends another about strict keys at one
// instant. The daemon that receives it passes LeaseRequests, LeaseGrants and
// Accepted to the lease table of the key, and the rest to its acceptor.
type Message struct {
	From, To crdt.Incarnation
	Stamp    hlc.Timestamp
	// Number is the number of the layout in force at the sender.
	Number           uint64
	Requests         []LeaseRequest
	Grants           []LeaseGrant
	Accepts          []Accept
	Accepted         []Accepted
	SnapshotRequests []SnapshotRequest
	SnapshotChunks   []SnapshotChunk
	// Layouts is the layout that the snapshot requests are for.
	Layouts []route.Layout
}

// The bounds of a message. A message beyond them is rejected.
const (
	// MaxItems bounds the items of each kind, except snapshot chunks and
	// layouts.
	MaxItems          = 1_024
	MaxSnapshotChunks = 1
	MaxLayouts        = 1
	// MaxRecords bounds the records of one snapshot chunk.
	MaxRecords = 1_024
	// MaxWatermarks bounds the watermarks of one key. A sliding log has one per
	// step of its window.
	MaxWatermarks = 40
)
