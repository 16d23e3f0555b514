package rules

import (
	"encoding/binary"
	"math/bits"

	"github.com/georld/rld/crdt"
)

// RuleHasher is Hasher.Key for the entries that a rule of a Set with a limit
// matched, on the grid of its limit. All these keys begin with the same bytes,
// and these are hashed once. It is immutable.
type RuleHasher struct {
	state    sipState
	rest     []byte // the bytes of the prefix that fill no block
	hashed   int    // bytes that state contains
	patterns []string
}

// RuleHasher returns the hasher of a rule with a limit.
func (h Hasher) RuleHasher(r *Rule) RuleHasher {
	x := RuleHasher{state: newSipState(h.k0, h.k1), rest: r.keyPrefix, patterns: r.Patterns}
	for ; len(x.rest) >= sipBlock; x.hashed += sipBlock {
		x.state = x.state.compress(binary.LittleEndian.Uint64(x.rest))
		x.rest = x.rest[sipBlock:]
	}
	return x
}

// Key returns the key of the entries and the buffer it used, for the next call.
func (x *RuleHasher) Key(buf []byte, entries []Entry) (crdt.Key, []byte) {
	buf = appendKeyValues(append(buf, x.rest...), entries, x.patterns)
	hi, lo := x.state.sum(buf, x.hashed)
	return crdt.Key{Hi: hi, Lo: lo}, buf
}

// sipBlock is the length of a block of SipHash in bytes.
const sipBlock = 8

// sipState is the state of SipHash-2-4 with 128 bits (Aumasson and Bernstein,
// 2012) between two blocks.
type sipState struct{ v0, v1, v2, v3 uint64 }

func newSipState(k0, k1 uint64) sipState {
	return sipState{
		k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee,
		k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573,
	}
}

// compress adds a block.
func (s sipState) compress(m uint64) sipState {
	v0, v1, v2, v3 := s.v0, s.v1, s.v2, s.v3^m
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return sipState{v0 ^ m, v1, v2, v3}
}

// sum returns the hash of a text that ends with b, after the bytes that the
// state contains, which are whole blocks.
func (s *sipState) sum(b []byte, before int) (hi, lo uint64) {
	v0, v1, v2, v3 := s.v0, s.v1, s.v2, s.v3
	last := uint64(before+len(b)) << 56
	for ; len(b) >= sipBlock; b = b[sipBlock:] {
		m := binary.LittleEndian.Uint64(b)
		v3 ^= m
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
	}
	for i := range b {
		last |= uint64(b[i]) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xee
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	hi = v0 ^ v1 ^ v2 ^ v3
	v1 ^= 0xdd
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return hi, v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 = bits.RotateLeft64(v0, 32) + v3
	v2 += v1
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	return v0, v1, bits.RotateLeft64(v2, 32), v3
}
