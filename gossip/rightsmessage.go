package gossip

import "github.com/georld/rld/crdt"

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
	l := e.links.find(to)
	if l == nil || len(l.rights) >= MaxRightsMessages {
		return false
	}
	l.rights = append(l.rights, m)
	l.queue.fix(l)
	e.expedited = true
	return true
}
