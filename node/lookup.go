package node

import (
	"math"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// locate finds the counter of hit i. A new key whose rule has no room, even
// after expired keys are gone, gets the overflow counter of the rule, and the
// status is degraded.
func (n *Node) locate(h []Hit, out []Status, i int, now int64) {
	hit, st := &h[i], &out[i]
	st.Degraded = NotDegraded
	if e := n.keys.live.Find(hit.Key); e != nil {
		st.probed.ref = ref{where: inLive, entry: e}
		if n.keys.touch(e, hit, now) {
			st.Degraded = KeysFull
		}
		if n.replica != nil && replicated(hit.Limit) {
			n.replica.follow(&n.keys, e, hit, now)
		}
		return
	}
	for j := range h[:i] {
		if h[j].Limit != nil && h[j].Key == hit.Key {
			st.probed.ref, st.Degraded = out[j].probed.ref, out[j].Degraded
			return
		}
	}
	switch {
	case !n.keys.roomFor(n.rules.counted(n.rules.index(hit.Rule), hit.Limit), now):
		st.probed.ref, st.Degraded = n.keys.locateOverflow(h, out, i, now), KeysFull
	case n.replica != nil && replicated(hit.Limit) && n.replica.engine.Has(hit.Key):
		st.probed.ref = n.learn(hit, now)
		if st.probed.ref.entry.Inherited() {
			st.Degraded = KeysFull
		}
	default:
		n.keys.promised++
		st.probed.ref = n.keys.locateNew(hit, i, now)
		if st.probed.ref.where == heir {
			st.Degraded = KeysFull
		}
	}
}

// ahead returns the hits of the same call that go first on a counter: those
// that fit, and those that are charged although they do not.
func (s *keys) ahead(h []Hit, out []Status, k crdt.Key, at ref) uint64 {
	sum := uint64(0)
	for j := range h {
		// A key that was new to the first of its hits may have an entry by now.
		if h[j].Limit == nil || out[j].probed.ref != at && h[j].Key != k || !s.owns(h[j].Key) {
			continue
		}
		if out[j].Over && !h[j].Limit.Shadow && !h[j].Limit.ChargeDenied {
			continue
		}
		sum = sat.Add(sum, h[j].N)
	}
	return sum
}

// duration converts milliseconds, with the greatest Duration as the maximum.
func duration(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
