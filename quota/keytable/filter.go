package keytable

import "github.com/georld/rld/crdt"

// Filter remembers keys with one bit of filterBits each. Every added key is
// found, and another one by chance. The zero value is empty.
type Filter struct{ bits []uint64 }

const filterBits = 1 << 16

// Add adds a key.
func (f *Filter) Add(k crdt.Key) {
	if f.bits == nil {
		f.bits = make([]uint64, filterBits/64)
	}
	i := k.Hi >> 48 // 16 bits that neither shard nor index use
	f.bits[i/64] |= 1 << (i % 64)
}

// Has reports whether a key may have been added.
func (f *Filter) Has(k crdt.Key) bool {
	i := k.Hi >> 48
	return f.bits != nil && f.bits[i/64]&(1<<(i%64)) != 0
}

// Clear removes all keys.
func (f *Filter) Clear() { f.bits = nil }
