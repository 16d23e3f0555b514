package node

import (
	"math"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
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
}

// place says where a hit's cell lies.
type place uint8

const (
	nowhere    place = iota // a new key: nothing was ever charged
	inLive                  // an entry of Node.live
	inOverflow              // an entry of Node.overflow
	unborn                  // an overflow counter that was never charged
)

// ref is where Probe found a hit's cell, for Charge. Two hits of one node and
// call have the same ref exactly when they have the same counter.
type ref struct {
	where place
	// index of the entry; of a counter that does not exist yet, the index of
	// the first hit of the call that found it missing.
	index int32
}

// locate finds the cell of hit i. A new key for which there is no room, even
// after expired ones have gone, gets its rule's overflow counter, and the
// status says so.
func (n *Node) locate(h []Hit, out []Status, i int, now int64) {
	hit, st := &h[i], &out[i]
	st.Degraded = NotDegraded
	if at := n.live.find(hit.Key); at >= 0 {
		st.ref = ref{inLive, at}
		// Not to be swept for a new key of the same call.
		if e := n.live.at(at); e.expires <= now {
			e.expires = now + 1
		}
		return
	}
	for j := range h[:i] {
		if h[j].Limit != nil && h[j].Key == hit.Key {
			st.ref, st.Degraded = out[j].ref, out[j].Degraded
			return
		}
	}
	if n.live.len()+n.promised < n.cfg.MaxKeys || n.sweep(now, sweepOnInsert) > 0 {
		n.promised++
		st.ref = ref{nowhere, int32(i)}
		return
	}
	st.Degraded = KeysFull
	st.ref = n.locateOverflow(h, out, i)
}

func (n *Node) locateOverflow(h []Hit, out []Status, i int) ref {
	k := overflowKey(&h[i])
	if at := n.overflow.find(k); at >= 0 {
		return ref{inOverflow, at}
	}
	for j := range h[:i] {
		missing := h[j].Limit != nil && n.owns(h[j].Key) && out[j].ref.where == unborn
		if missing && overflowKey(&h[j]) == k {
			return out[j].ref
		}
	}
	return ref{unborn, int32(i)}
}

// overflowKey names the counter that new keys of a rule share in this shard.
func overflowKey(h *Hit) crdt.Key {
	k := crdt.Key{Lo: h.Limit.Grid()}
	if h.Rule != nil {
		k.Hi = uint64(h.Rule.ID)
	}
	return k
}

// make returns where the hit's cell lies, adding it when there is none. The
// same new key may stand in a call twice, so it is looked up again.
func (n *Node) make(h *Hit, at ref) ref {
	switch at.where {
	case nowhere:
		if i := n.live.find(h.Key); i >= 0 {
			return ref{inLive, i}
		}
		return ref{inLive, n.live.insert(h.Key)}
	case unborn:
		k := overflowKey(h)
		if i := n.overflow.find(k); i >= 0 {
			return ref{inOverflow, i}
		}
		return ref{inOverflow, n.overflow.insert(k)}
	}
	return at
}

func (n *Node) entry(at ref) *entry {
	if at.where == inOverflow {
		return n.overflow.at(at.index)
	}
	return n.live.at(at.index)
}

// cell returns the cell and log of a ref; those of a key that was never
// charged are empty and must not be written.
func (n *Node) cell(at ref) (*quota.Cell, *quota.Log) {
	if at.where == nowhere || at.where == unborn {
		return &n.zero, nil
	}
	e := n.entry(at)
	return &e.cell, n.logs.get(e.log)
}

// duration turns milliseconds into a Duration, capped at the longest.
func duration(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
