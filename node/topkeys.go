package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/internal/topk"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// hottest follows the keys that are asked for and refused most, by a sample of
// about a thousand hits a second, or one in 64 where that is more.
type hottest struct {
	asked, denied *topk.Sketch // nil until the first sample
	every         int32        // one hit in so many
	last          time.Duration
}

// The bounds of the sample.
const (
	hottestKeys = 64 // of each shard
	sampleLeast = 64
)

// sample counts a hit for as many as it stands for.
func (s *hottest) sample(h *Hit, st *Status, mono time.Duration) {
	if s.asked == nil {
		s.asked, s.denied, s.every = topk.New(hottestKeys), topk.New(hottestKeys), 1
	}
	weight := h.N * uint64(s.every)
	at := mono.Milliseconds()
	s.asked.Add(h.Key, weight, at)
	if st.Over {
		s.denied.Add(h.Key, weight, at)
	}
	switch took := mono - s.last; {
	case took < 500*time.Microsecond:
		s.every = min(2*s.every, sampleLeast)
	case took > 2*time.Millisecond:
		s.every = max(s.every/2, 1)
	}
	s.last = mono
}

// watchHot takes note of a hit that is of the sample. What others do not know of a hot key yet they are
// told at once.
func (n *Node) watchHot(h *Hit, st *Status) {
	if h.N == 0 || h.N > 1<<32 {
		return
	}
	n.hottest.sample(h, st, n.at.Mono)
	n.unsampled = n.hottest.every
	st.Sampled = true
	if n.cfg.HotThreshold > 0 && !st.homed && n.hottest.asked.Rate(h.Key, n.at.Mono.Milliseconds()) >= n.cfg.HotThreshold {
		st.room = 0
	}
}

// HotKey is a key that is asked for often.
type HotKey struct {
	Key  crdt.Key
	Rule *rules.Rule // nil when it is not known any more
	// Asked and Denied are hits a second, at least.
	Asked, Denied uint64
	// Used is what is in use of Capacity.
	Used, Capacity uint64
}

// Hottest returns the keys that are asked for most, and those that are refused most, in
// the order of how much. It is not for the decision path.
func (n *Node) Hottest(at Instant) []HotKey {
	s := &n.hottest
	if s.asked == nil {
		return nil
	}
	now, ms := n.millis(at), at.Mono.Milliseconds()
	rates := map[crdt.Key]HotKey{}
	for _, k := range s.asked.Above(1, ms) {
		rates[k.Key] = HotKey{Key: k.Key, Asked: k.Rate}
	}
	for _, k := range s.denied.Above(1, ms) {
		r := rates[k.Key]
		r.Key, r.Denied = k.Key, k.Rate
		r.Asked = max(r.Asked, r.Denied)
		rates[k.Key] = r
	}
	out := make([]HotKey, 0, len(rates))
	for _, r := range rates {
		if i := n.live.find(r.Key); i >= 0 {
			if e := n.live.at(i); e.rule >= 0 {
				r.Rule = n.set.Rules()[e.rule]
				l := r.Rule.Limit
				r.Used, r.Capacity = quota.Of(l).Used(&e.cell, n.extras.log(e.extra), now), quota.Of(l).Capacity()
			}
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b HotKey) int {
		return cmp.Or(cmp.Compare(b.Asked, a.Asked), cmp.Compare(b.Denied, a.Denied),
			cmp.Compare(a.Key.Hi, b.Key.Hi), cmp.Compare(a.Key.Lo, b.Key.Lo))
	})
	return out
}
