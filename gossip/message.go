package gossip

import (
	"cmp"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
)

// Message is a message from one incarnation to another: cells, an
// acknowledgement of the other's cells, and clocks to measure staleness.
type Message struct {
	// From and To are incarnations.
	From, To crdt.Incarnation
	// Shard is the number of the sender's shard among Shards. All daemons split
	// keys in the same way.
	Shard, Shards int

	Header
	Part
}

// Header is the common part of all shards of a daemon in one frame.
type Header struct {
	// Stamp is the sender's hybrid logical clock, 0 in most messages: the
	// receiver derives it from an earlier one and the nonces.
	Stamp hlc.Timestamp
	// Rules is the hash of the sender's rule set, 0 when the receiver has it.
	Rules uint64
	// Ready reports whether the sender takes its share of the work.
	Ready bool
	// Nonce is the sender's monotonic clock in units of NonceUnit. Echo is the
	// latest Nonce of To that the sender received, and Held the time since it
	// was received, in the same unit. Both are 0 if there is none, and, after
	// Unite, in a frame without an answer.
	Nonce, Echo, Held uint64
}

// NonceUnit is the unit of nonces. A round trip is measured to within two of
// them.
const NonceUnit = 100 * time.Microsecond

// noncesPerMilli is the number of nonces in a millisecond.
const noncesPerMilli = uint64(time.Millisecond / NonceUnit)

// nonceOf returns the nonce of a time, at least 1, and sentAt the time of one.
func nonceOf(at time.Duration) uint64 { return uint64(max(1, at/NonceUnit)) }

func sentAt(nonce uint64) time.Duration { return time.Duration(nonce) * NonceUnit }

// Unite gives the messages of one daemon's shards to one peer one header for
// one frame. Each shard has its own view of the peer. The oldest echo is true
// for all of them; a newer one would confirm messages that some shard did not
// receive. What one of them has to repeat is in the frame for all. A frame in
// which no shard answers echoes nothing. msgs is not empty.
func Unite(msgs []Message) {
	h, answers := msgs[0].Header, msgs[0].Answers
	for i := range msgs[1:] {
		o := &msgs[i+1].Header
		answers = answers || msgs[i+1].Answers
		h.Stamp = max(h.Stamp, o.Stamp)
		h.Rules = cmp.Or(h.Rules, o.Rules)
		h.Ready = h.Ready && o.Ready
		h.Nonce = max(h.Nonce, o.Nonce)
		if o.Echo < h.Echo {
			h.Echo, h.Held = o.Echo, o.Held
		}
	}
	if !answers {
		h.Echo, h.Held = 0, 0
	}
	for i := range msgs {
		msgs[i].Header = h
	}
}

// Part is the part of one shard. Versions are those of the sender's shard; they
// grow with each change of one of its cells.
type Part struct {
	// Cells holds the cells for To that changed in the versions (Lo, Hi]. The
	// sums of From's and To's regions are under their incarnations, and not
	// under those of the regions.
	Lo, Hi uint64
	Cells  []Cell
	// Complete reports whether Hi is the sender's latest version. Delayed
	// increments have no version yet; the oldest has been delayed for Unsent.
	Complete bool
	// Unsent is the age of the oldest increment that neither this message nor
	// an earlier one covers, 0 for none.
	Unsent time.Duration

	// Answers reports whether Ack is there, the version of To's shard up to
	// which the sender has everything. Otherwise Ack is 0.
	Answers bool
	Ack     uint64
	// RightsMessages are sent once, and may be lost.
	RightsMessages []RightsMessage
	// Loads are sent once, and may be lost.
	Loads []LoadReport
	// Refused lists cells of To that Ack covers and the sender did not accept,
	// up to MaxRefused: To must send them again later.
	Refused []Refusal
	// HasViews reports whether Own and Staleness are known, as in all Complete
	// messages of an engine; otherwise they are 0. Own is the staleness of the
	// sender's view of its own region, Staleness that of each other region, by
	// incarnation ascending, inside a region.
	HasViews  bool
	Own       time.Duration
	Staleness []Staleness

	// Digests are fingerprints of the sender's own long-lived cells, by bucket
	// ascending; empty when none are compared. They are those at Hi, in a
	// Complete message.
	Digests []BucketDigest
	// Repair lists the buckets, ascending, whose digests differ from those of
	// To's cells at the sender.
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

// Reason is the reason for a refused cell.
type Reason uint8

// The reasons.
const (
	// TooFarAhead: the window starts farther in the future than clocks may
	// differ. The cell is accepted later.
	TooFarAhead Reason = iota + 1
	// NoRoom: the bound on cells is reached.
	NoRoom
	// Implausible: the sender cannot hold the rights that it transfers.
	Implausible

	// MaxReason is the greatest reason.
	MaxReason = Implausible
)

// String returns the reason for logs and events.
func (r Reason) String() string {
	switch r {
	case TooFarAhead:
		return "too far ahead"
	case NoRoom:
		return "no room"
	case Implausible:
		return "more rights than the peer can hold"
	}
	return "unknown reason"
}

// Refusal is a cell that was not accepted.
type Refusal struct {
	CellID
	Reason Reason
}

// RightsMessageKind is the kind of a RightsMessage.
type RightsMessageKind uint8

const (
	// TransferRequest: the sender requests rights of the receiver, a regional
	// peer. The reply is a transfer or a TransferRefusal.
	TransferRequest RightsMessageKind = iota + 1
	// TransferRefusal: the receiver's request is not met.
	TransferRefusal
	// NeedReport: the sender runs short of rights; the receiver is the
	// aggregator of its region.
	NeedReport
	// ShortageNotice: the sender's region runs short by Need; both are
	// aggregators of different regions. It may be about the next window, which
	// the region starts with Rights.
	ShortageNotice
	// CollectRequest: the sender, an aggregator, requests that the receiver, a
	// regional peer, transfers up to Need to For.
	CollectRequest

	// MaxRightsMessage is the greatest kind.
	MaxRightsMessage = CollectRequest
)

// RightsMessage is a message about the rights to a key in a window. It is sent
// once and never acknowledged: the sender sends another one if it has no
// effect.
type RightsMessage struct {
	Kind   RightsMessageKind
	Key    crdt.Key
	Window int64
	// Rule is CellMeta.Rule of the key.
	Rule uint64
	// Rights are the rights left to the sender, Second the hits offered to it
	// in the last second; sums over its region in a ShortageNotice.
	Rights, Second uint64
	// Need is the number of needed rights (TransferRequest, ShortageNotice,
	// CollectRequest), For the daemon that needs them (CollectRequest).
	Need uint64
	For  crdt.Incarnation
}

// MaxRightsMessages bounds the rights messages of a message; more are dropped.
const MaxRightsMessages = 64

// Send sends a rights message to a peer without waiting for the interval. It
// returns false for an unknown peer and beyond MaxRightsMessages.
func (e *Engine) Send(to crdt.Incarnation, m RightsMessage) bool {
	l := linkOf(e, to)
	if l == nil || len(l.rights) >= MaxRightsMessages {
		return false
	}
	l.rights = append(l.rights, m)
	l.queue.fix(l)
	e.expedited = true
	return true
}
