package node

import (
	"math"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/transfer"
	"github.com/georld/rld/rules"
)

// Hit is one descriptor after matching: which counter, which limit, how many.
type Hit struct {
	Key crdt.Key
	// Limit is nil for a descriptor that nothing limits; it is then skipped.
	Limit *rules.Limit
	// Rule is nil for an override on a descriptor that no rule matches.
	Rule *rules.Rule
	// N is the hits to charge; 0 peeks.
	N uint64
	// Ticket is that under which the call sought rights, 0 for none: see Seek.
	// Failed is how many of the homes that can decide the hit have not answered
	// in time: first the key's, then that of the region's floor.
	Ticket uint64
	Failed uint8
	// Peek says that the call charges nothing: what a home is asked for then is
	// how things stand.
	Peek bool
}

// place says where a hit's cell lies.
type place uint8

const (
	nowhere    place = iota // a new key: nothing was ever charged
	heir                    // a new key that an overflow counter may have counted
	unborn                  // an overflow counter that was never charged
	inLive                  // an entry of Node.live
	inOverflow              // an entry of Node.overflow
)

// ref is where Probe found a hit's cell, for Charge. Two hits of one node and
// call have the same ref exactly when they have the same counter.
type ref struct {
	where place
	// index of the entry; of a counter that does not exist yet, the index of
	// the first hit of the call that found it missing.
	index int32
	from  int32 // heir: the entry of Node.overflow that it begins as
}

// exists reports whether there is an entry.
func (r ref) exists() bool { return r.where >= inLive }

// locate finds the cell of hit i. A new key for which there is no room, even
// after expired ones have gone, gets its rule's overflow counter, and the
// status says so.
func (n *Node) locate(h []Hit, out []Status, i int, now int64) {
	hit, st := &h[i], &out[i]
	st.Degraded = NotDegraded
	if at := n.live.find(hit.Key); at >= 0 {
		st.ref = ref{where: inLive, index: at}
		if n.touch(n.live.at(at), hit, now) {
			st.Degraded = KeysFull
		}
		if n.replica != nil {
			n.follow(n.live.at(at), hit, now)
		}
		return
	}
	for j := range h[:i] {
		if h[j].Limit != nil && h[j].Key == hit.Key {
			st.ref, st.Degraded = out[j].ref, out[j].Degraded
			return
		}
	}
	if n.roomFor(now) {
		if n.replica != nil && n.replica.engine.Has(hit.Key) {
			st.ref = n.learn(hit, now)
			if n.live.at(st.ref.index).inherited() {
				st.Degraded = KeysFull
			}
			return
		}
		n.promised++
		st.ref = n.locateNew(hit, i, now)
		if st.ref.where == heir {
			st.Degraded = KeysFull
		}
		return
	}
	st.Degraded = KeysFull
	st.ref = n.locateOverflow(h, out, i, now)
}

// roomFor reports whether one more key may be tracked, after expired ones have
// gone.
func (n *Node) roomFor(now int64) bool {
	return n.live.len()+n.promised < n.cfg.MaxKeys || n.sweep(now, sweepOnInsert) > 0
}

// touch readies an entry that is about to be read and perhaps charged: it is
// not swept for a new key of the same call, and a bucket follows the rate of
// its limit. It reports whether the entry holds counts of other keys.
func (n *Node) touch(e *entry, h *Hit, now int64) bool {
	if e.expires() <= now {
		e.due = uint64(now+1) << 1
	}
	if quota.Of(h.Limit).Drains() && e.cell.Prev != uint64(h.Limit.Requests) {
		quota.Of(h.Limit).Adopt(&e.cell, now)
		e.keepUntil(quota.Of(h.Limit).Expires(&e.cell))
	}
	return e.inherited()
}

// locateNew returns where a new key that has room begins: from nothing, or,
// when its hits may lie in its rule's overflow counter, from a copy of that.
// The copy is an upper bound, so that no hit is forgotten.
func (n *Node) locateNew(h *Hit, i int, now int64) ref {
	if n.overflow.len() > 0 && n.spilled.has(h.Key) {
		if at := n.overflow.find(overflowKey(h)); at >= 0 && n.overflow.at(at).expires() > now {
			n.touch(n.overflow.at(at), h, now)
			return ref{heir, int32(i), at}
		}
	}
	return ref{where: nowhere, index: int32(i)}
}

func (n *Node) locateOverflow(h []Hit, out []Status, i int, now int64) ref {
	k := overflowKey(&h[i])
	if at := n.overflow.find(k); at >= 0 {
		n.touch(n.overflow.at(at), &h[i], now)
		return ref{where: inOverflow, index: at}
	}
	for j := range h[:i] {
		missing := h[j].Limit != nil && n.owns(h[j].Key) && out[j].ref.where == unborn
		if missing && overflowKey(&h[j]) == k {
			return out[j].ref
		}
	}
	return ref{where: unborn, index: int32(i)}
}

// overflowKey names the counter that new keys of a rule share in this shard.
func overflowKey(h *Hit) crdt.Key {
	k := crdt.Key{Hi: h.Limit.Grid()}
	if h.Rule != nil {
		k.Lo = uint64(h.Rule.ID)
	}
	return k
}

// make returns where the hit's cell lies, adding it when there is none. The
// same new key may stand in a call twice, so it is looked up again.
func (n *Node) make(h *Hit, at ref) ref {
	switch at.where {
	case nowhere, heir:
		i := n.live.find(h.Key)
		if i < 0 {
			i = n.live.insert(h.Key)
			if at.where == heir {
				n.inherit(n.live.at(i), n.overflow.at(at.from))
			}
		}
		return ref{where: inLive, index: i}
	case unborn:
		k := overflowKey(h)
		i := n.overflow.find(k)
		if i < 0 {
			i = n.overflow.insert(k)
			if n.cfg.Allotments != nil && quota.Of(h.Limit).Drains() {
				n.attach(n.overflow.at(i), &account{grid: h.Limit.Grid()})
			}
		}
		return ref{where: inOverflow, index: i}
	}
	return at
}

// inherit makes a new entry begin as a copy of an overflow counter.
func (n *Node) inherit(e, from *entry) {
	e.cell = from.cell
	e.due = uint64(from.expires())<<1 | 1
	if from.extra >= 0 {
		e.extra = n.extras.take()
		n.extras.log(e.extra).CopyFrom(n.extras.log(from.extra))
		if r := n.extras.account(from.extra); r != nil {
			n.extras.all[e.extra].account = &account{
				Account: r.Account, grid: r.grid, transfers: transfer.New(n.at.Mono.Milliseconds(), 0, 0, 0),
			}
		}
	}
}

func (n *Node) entry(at ref) *entry {
	if at.where == inOverflow {
		return n.overflow.at(at.index)
	}
	return n.live.at(at.index)
}

// cell returns the cell and log that a hit is judged by; those of a key that
// was never charged are empty and must not be written.
func (n *Node) cell(at ref) (*quota.Cell, *quota.Log) {
	var e *entry
	switch at.where {
	case nowhere, unborn:
		return &n.zero, nil
	case heir:
		e = n.overflow.at(at.from)
	default:
		e = n.entry(at)
	}
	return &e.cell, n.extras.log(e.extra)
}

// duration turns milliseconds into a Duration, capped at the longest.
func duration(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
