package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
)

// Message is what one incarnation tells another: cells, what it has of the
// other's, and what both need to measure how old their views are. It belongs
// to who receives it; the slices are not shared with the sender.
type Message struct {
	// From and To are incarnations.
	From, To crdt.Incarnation
	// Shard is the number of the sender's shard among Shards; keys are split
	// alike everywhere.
	Shard, Shards int

	Header
	Part
}

// Header is the part that all shards of a daemon have in common in one frame.
type Header struct {
	// Stamp is the sender's hybrid logical clock.
	Stamp hlc.Timestamp
	// Rules is the hash of the sender's rule set.
	Rules uint64
	// Ready says that the sender takes its share of work.
	Ready bool
	// Nonce is the sender's monotonic clock in microseconds. Echo is the
	// latest Nonce of To that the sender had received when it sent, 0 for
	// none, and Held how long ago that was, in microseconds.
	Nonce, Echo, Held uint64
}

// Unite gives the messages of one daemon's shards to one peer one header, as
// they travel in one frame: each shard knows of the peer by what was said to
// itself. The oldest echo is true for all of them; a newer one would say that
// something was heard which was not. msgs is not empty.
func Unite(msgs []Message) {
	h := msgs[0].Header
	for i := range msgs[1:] {
		o := &msgs[i+1].Header
		h.Stamp = max(h.Stamp, o.Stamp)
		h.Ready = h.Ready && o.Ready
		h.Nonce = max(h.Nonce, o.Nonce)
		if o.Echo < h.Echo {
			h.Echo, h.Held = o.Echo, o.Held
		}
	}
	for i := range msgs {
		msgs[i].Header = h
	}
}

// Part is what one shard says. Versions are those of the sender's shard; they
// grow with each change of one of its cells.
type Part struct {
	// Cells holds, in the order of Compare, the cells that matter to To and
	// changed in the versions (Lo, Hi].
	Lo, Hi uint64
	Cells  []Cell
	// Complete says that the sender had nothing more to say than up to Hi,
	// but for increments it keeps back for at most Unsent so far.
	Complete bool
	// Expedited asks the receiver to pass on at once what it would otherwise
	// pass on at its next interval.
	Expedited bool
	// Unsent is the age of the oldest increment that this message and those
	// before it do not cover, 0 when there is none.
	Unsent time.Duration

	// Ack is the version of To's shard up to which the sender has all.
	Ack uint64
	// RightsMessages are said once, in urgent messages, and may be lost.
	RightsMessages []RightsMessage
	// Refused lists cells of To that Ack covers and the sender did not take:
	// To must send them again, later.
	Refused []Refusal
	// Staleness is how old the sender's view of its own region was (Own) and,
	// inside a region, its view of each other region, by slot ascending.
	Own       time.Duration
	Staleness []Staleness

	// Digests are fingerprints of the sender's own long-lived cells, by
	// bucket ascending; empty when none are compared. They hold at Hi, in a
	// Complete message.
	Digests []BucketDigest
	// Repair lists the buckets, ascending, whose digests did not match what
	// the sender has of To's cells.
	Repair []uint16
}

// Staleness is the age of a view of a region.
type Staleness struct {
	Region crdt.Incarnation
	Age    time.Duration
}

// BucketDigest is the digest of the cells of one bucket of keys.
type BucketDigest struct {
	Bucket uint16
	Digest crdt.Digest
}

// Reason says why a cell was refused.
type Reason uint8

// The reasons.
const (
	// TooFarAhead: the label starts further in the future than clocks may be
	// apart. It will be taken when its time comes.
	TooFarAhead Reason = iota + 1
	// NoRoom: the bound on cells or slots is reached.
	NoRoom
)

// String returns the reason for logs and events.
func (r Reason) String() string {
	switch r {
	case TooFarAhead:
		return "too far ahead"
	case NoRoom:
		return "no room"
	}
	return "unknown reason"
}

// Refusal is a cell that was not taken.
type Refusal struct {
	CellID
	Reason Reason
}
