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
	i := filterBit(k)
	f.bits[i/64] |= 1 << (i % 64)
}

// Has reports whether a key may have been added.
func (f *Filter) Has(k crdt.Key) bool {
	i := filterBit(k)
	return f.bits != nil && f.bits[i/64]&(1<<(i%64)) != 0
}

// filterBit returns 16 bits of a key that neither shards nor the index use.
func filterBit(k crdt.Key) uint64 { return uint64(k) >> 40 % filterBits }

// Clear removes all keys.
func (f *Filter) Clear() { f.bits = nil }
