package crdt

// Key names what is counted: a rule and a descriptor, as a 128-bit keyed hash.
type Key struct{ Hi, Lo uint64 }

// CellID names one cell of a replica's state.
type CellID struct {
	Key         Key
	Window      int64
	Incarnation Incarnation
}

// Digest is a fingerprint of a set of cells and their values, by which two
// replicas find out whether they hold the same without sending it. It is the
// sum, modulo 2^64, of a mix of each cell, so it does not depend on the order
// in which cells came, and one change of one cell is a matter of two mixes.
//
// Equal sets have equal digests; sets that differ in one number of one cell
// have different ones, and any others the same one by a chance of 2^-64. A
// collision costs a repair that waits for the next change in its bucket; it
// never costs a count. It is no defense against somebody who knows the
// cluster's secret and hence the keys.
//
// The mix is part of what replicas compare: a change of it is a change of the
// protocol. The zero value is the digest of no cells.
type Digest uint64

// CellDigest returns the digest of one cell. That of the zero value is 0: a
// cell that counted nothing and an absent one are the same.
func CellDigest(id CellID, v PN) Digest {
	if v == (PN{}) {
		return 0
	}
	h := mix(0, id.Key.Hi)
	h = mix(h, id.Key.Lo)
	h = mix(h, uint64(id.Window))
	h = mix(h, uint64(id.Incarnation))
	h = mix(h, v.P)
	return Digest(mix(h, v.N))
}

// Replace returns the digest after the value of a cell became is where it was
// was. The zero value stands for an absent cell on either side, so this is
// also how a cell is added and dropped.
func (d Digest) Replace(id CellID, was, is PN) Digest {
	return d - CellDigest(id, was) + CellDigest(id, is)
}

// Plus returns the digest of both sets of cells, which must be disjoint.
func (d Digest) Plus(e Digest) Digest { return d + e }

// Minus returns the digest without the cells of e, all of which d must have.
func (d Digest) Minus(e Digest) Digest { return d - e }

// mix absorbs a word. For a fixed h it maps words one to one, and for a fixed
// word states (the finalizer of SplitMix64, Stafford's 13th variant); adding
// the odd constant first keeps 0 from mapping to 0.
func mix(h, word uint64) uint64 {
	h = (h ^ word) + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
