package crdt

import "cmp"

// Key identifies a rule and a descriptor: their 64-bit keyed hash. Its lowest
// ShardBits bits select the shard of a daemon that counts it.
type Key uint64

// ShardBits is the maximum number of bits of a key that select its shard.
const ShardBits = 6

// Compare orders keys. It returns -1, 0 or 1.
func (k Key) Compare(o Key) int { return cmp.Compare(k, o) }

// CellID identifies one cell: the count of one writer for a key and window.
type CellID struct {
	Key         Key
	Window      int64
	Incarnation Incarnation
}

// Digest is a fingerprint of a set of cells and their values. Two replicas
// compare digests to find out whether they hold the same cells without sending
// them. It is the sum, modulo 2^64, of a mix of each cell. So it does not
// depend on the order in which cells arrived, and a change of one cell costs
// two mixes.
//
// Equal sets have equal digests. Sets that differ in one number of one cell
// have different ones, any others the same one with a probability of 2^-64. A
// collision delays a repair until the next change in its bucket; it never costs
// a count. A digest is no defense against an attacker with the secret of the
// cluster, and hence the keys.
//
// The mix is part of the protocol: replicas with different mixes never agree.
// The zero value is the digest of no cells.
type Digest uint64

// cellDigest returns the digest of one cell. The digest of the zero value is 0:
// a cell that counted nothing equals an absent one.
func cellDigest(id CellID, v PN) Digest {
	if v == (PN{}) {
		return 0
	}
	h := mix(0, uint64(id.Key))
	h = mix(h, uint64(id.Window))
	h = mix(h, uint64(id.Incarnation))
	h = mix(h, v.P)
	return Digest(mix(h, v.N))
}

// Replace returns the digest after a cell changed its value from was to is. Use
// the zero value for an absent cell, on either side, to add and to drop a cell.
func (d Digest) Replace(id CellID, was, is PN) Digest {
	return d - cellDigest(id, was) + cellDigest(id, is)
}

// mix adds a word to a hash. For a fixed h it maps words one to one, and for a
// fixed word it maps states one to one (the finalizer of SplitMix64, Stafford's
// 13th variant). Adding the odd constant first keeps 0 from mapping to 0.
func mix(h, word uint64) uint64 {
	h = (h ^ word) + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
