package overage

import "github.com/georld/rld/node"

// BusyKey is the busiest key of a rule in one window over all shards.
type BusyKey struct {
	node.Busy
	// Regions are the admitted hits of each region.
	Regions []node.RegionHits
	// Shard is the shard of the key.
	Shard int
}

// busyWindows bounds the windows of a rule in which shards have a busiest key:
// two each, and one more for a clock that is ahead.
const busyWindows = 3

// BusyKeys collects the busiest keys of rules. It reuses its memory and belongs
// to one goroutine at a time.
type BusyKeys struct {
	keys   []BusyKey
	places []int32 // index in keys plus 1, by rule and window
	hits   []node.RegionHits
}

// reset removes all keys and makes room for a number of rules.
func (b *BusyKeys) reset(rules int) {
	b.keys, b.hits = b.keys[:0], b.hits[:0]
	b.places = append(b.places[:0], make([]int32, busyWindows*rules)...)
}

// Add adds the busiest key of a rule in a window at one shard.
func (b *BusyKeys) Add(k *node.Busy, shard int) {
	for j := busyWindows * k.Rule.Index; j < busyWindows*(k.Rule.Index+1); j++ {
		if b.places[j] == 0 {
			b.keys = append(b.keys, BusyKey{Busy: *k, Shard: shard})
			b.places[j] = int32(len(b.keys))
			return
		}
		if best := &b.keys[b.places[j]-1]; best.Window == k.Window {
			if k.Count > best.Count {
				best.Busy, best.Shard = *k, shard
			}
			return
		}
	}
}

// Admitted sets the admitted hits of each key. read appends those of one key.
func (b *BusyKeys) Admitted(read func(to []node.RegionHits, k *BusyKey) []node.RegionHits) {
	for i := range b.keys {
		k, from := &b.keys[i], len(b.hits)
		b.hits = read(b.hits, k)
		k.Regions = b.hits[from:len(b.hits):len(b.hits)]
	}
}
