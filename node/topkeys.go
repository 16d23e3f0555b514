package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/topk"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// topKeys samples hits for the keys that are asked for, and denied, most often:
// about a thousand hits per second, or one in 64 if that is more.
type topKeys struct {
	asked, denied *topk.Sketch // nil until the first sample
	every         int32        // one hit in so many
	last          time.Duration
	unsampled     int32 // hits until the next one is sampled
}

// The bounds of the sample.
const (
	topKeysPerShard = 64
	sampleLeast     = 64
)

// sample counts a hit with the weight of the hits that it stands for.
func (s *topKeys) sample(h *Hit, st *Status, mono time.Duration) {
	if s.asked == nil {
		s.asked, s.denied, s.every = topk.New(topKeysPerShard), topk.New(topKeysPerShard), 1
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

// watch samples a hit, unless its size is out of range, and reports whether the
// key is hot: asked for at least threshold times per second. A threshold of 0
// is never reached.
func (s *topKeys) watch(h *Hit, st *Status, mono time.Duration, threshold uint64) (hot bool) {
	if h.N == 0 || h.N > 1<<32 {
		return false
	}
	s.sample(h, st, mono)
	s.unsampled = s.every
	st.Sampled = true
	return threshold > 0 && s.asked.Rate(h.Key, mono.Milliseconds()) >= threshold
}

// HotKey is a key that is asked for often.
type HotKey struct {
	Key  crdt.Key
	Rule *rules.Rule // nil if it is not known any more
	// Asked and Denied are lower bounds, in hits per second.
	Asked, Denied uint64
	// Used is the usage of Capacity, in hits.
	Used, Capacity uint64
}

// Hottest returns the keys that are asked for most and those that are denied
// most, by falling rates. It is not for the decision path.
func (n *Node) Hottest(at Instant) []HotKey {
	s := &n.top
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
		if e := n.keys.live.Find(r.Key); e != nil && e.Rule >= 0 {
			r.Rule = n.rules.set.Rules()[e.Rule]
			f := quota.Of(r.Rule.Limit)
			r.Used, r.Capacity = f.Used(&e.Cell, n.keys.sides.log(e.Extra), now), f.Capacity()
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b HotKey) int {
		return cmp.Or(cmp.Compare(b.Asked, a.Asked), cmp.Compare(b.Denied, a.Denied),
			a.Key.Compare(b.Key))
	})
	return out
}
