package node

import "github.com/georld/rld/crdt"

// overflowFilter remembers the keys that overflow counters counted, with one
// bit of filterBits per key. Every such key is found, another one by chance; it
// then starts from the overflow counter and may be denied falsely. The zero
// value is empty.
type overflowFilter struct{ bits []uint64 }

const filterBits = 1 << 16

func (f *overflowFilter) add(k crdt.Key) {
	if f.bits == nil {
		f.bits = make([]uint64, filterBits/64)
	}
	i := k.Hi >> 48 // 16 bits that neither shard nor index use
	f.bits[i/64] |= 1 << (i % 64)
}

func (f *overflowFilter) has(k crdt.Key) bool {
	i := k.Hi >> 48
	return f.bits != nil && f.bits[i/64]&(1<<(i%64)) != 0
}

// clear removes all keys.
func (f *overflowFilter) clear() { f.bits = nil }
