package node

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
)

// Hit is one descriptor after matching: its counter, its limit and its hits.
type Hit struct {
	Key crdt.Key
	// Limit is nil for a descriptor that nothing limits; it is skipped.
	Limit *rules.Limit
	// Rule is nil for an override on a descriptor that matches no rule.
	Rule *rules.Rule
	// N is the hits to charge; 0 charges none.
	N uint64
	// Ticket identifies the lease request of the call, 0 for none. Failed is
	// the number of owners that did not answer the call in time: first the
	// key's owner, then that of the regional reserve.
	Ticket uint64
	Failed uint8
	// Peek is set if the call charges nothing. The owner of a strict key then
	// reports its state only.
	Peek bool
	// Twin is set if the hits count under another key of the same descriptor,
	// too, and are in the statistics as those of that one: see Call.Join.
	Twin bool

	plain bool // see Admit; false if that is not known
}

// place is the kind of counter that a hit has.
type place uint8

const (
	nowhere    place = iota // a new key without hits
	heir                    // a new key that an overflow counter may have counted
	unborn                  // an overflow counter without hits
	inLive                  // an entry of keys.live
	inOverflow              // an entry of keys.overflow
)

// ref is the counter that Probe found for a hit, for use by Charge. Two hits of
// one node and call have equal refs if and only if they have the same counter.
type ref struct {
	where place
	// first is the index of the first hit of the call with this counter, if
	// there is no entry yet.
	first int32
	// entry is that of the counter. Of an heir it is the entry of keys.overflow
	// to start from. It is nil if there is none.
	entry *keytable.Entry
}

// exists reports whether there is an entry.
func (r ref) exists() bool { return r.where >= inLive }

// overflowKey returns the key of the counter that the new keys of a rule share
// in this shard.
func overflowKey(h *Hit) crdt.Key {
	k := rendezvous.Mix(h.Limit.Grid())
	if h.Rule != nil {
		k ^= uint64(h.Rule.ID)
	}
	return crdt.Key(k)
}
