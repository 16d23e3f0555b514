package daemon

import (
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// busyKey is the busiest key of a rule in one label over all shards, and what each
// region admitted of it.
type busyKey struct {
	node.Busy
	regions []node.RegionHits
	shard   int
}

// busyWindows is for how many labels of a rule shards may know a busiest key: two
// each, and a clock may be ahead.
const busyWindows = 3

// busyKeys is a look at the busiest keys, with the memory of the one before.
type busyKeys struct {
	keys   []busyKey
	places []int32 // in keys, and one; by rule and label
	hits   []node.RegionHits
}

// look finds the busiest keys of the rules of a set. It finds none when another set
// is in force.
func (b *busyKeys) look(e *Engine, at node.Instant, set *rules.Set) {
	e.reload.Lock()
	defer e.reload.Unlock()
	b.keys, b.hits = b.keys[:0], b.hits[:0]
	if e.Rules() != set {
		return
	}
	n := busyWindows * len(set.Rules())
	b.places = append(b.places[:0], make([]int32, n)...)
	for i, s := range e.shards {
		s.lock()
		s.node.Busiest(at, func(k *node.Busy) { b.take(k, i) })
		s.mu.Unlock()
	}
	for i := range b.keys {
		k := &b.keys[i]
		s, from := e.shards[k.shard], len(b.hits)
		s.lock()
		b.hits = s.node.Admitted(b.hits, &k.Busy)
		s.mu.Unlock()
		k.regions = b.hits[from:len(b.hits):len(b.hits)]
	}
}

// take takes in what a shard says.
func (b *busyKeys) take(k *node.Busy, shard int) {
	for j := busyWindows * k.Rule.Index; j < busyWindows*(k.Rule.Index+1); j++ {
		if b.places[j] == 0 {
			b.keys = append(b.keys, busyKey{Busy: *k, shard: shard})
			b.places[j] = int32(len(b.keys))
			return
		}
		if best := &b.keys[b.places[j]-1]; best.Window == k.Window {
			if k.Count > best.Count {
				best.Busy, best.shard = *k, shard
			}
			return
		}
	}
}
