package rules

import (
	"encoding/binary"
	"math/bits"
)

// sipHash is a SipHash-2-4-128 of bytes that come in pieces, of which it
// returns the first word. It can be copied: the common beginning of many
// texts is hashed once.
type sipHash struct {
	v0, v1, v2, v3 uint64
	tail           uint64 // the bytes behind the last whole block of eight
	size           uint64 // bytes so far
}

// newSipHash returns the hash of no bytes under a secret.
func newSipHash(k0, k1 uint64) sipHash {
	return sipHash{
		v0: k0 ^ 0x736f6d6570736575, v1: k1 ^ 0x646f72616e646f6d ^ 0xee,
		v2: k0 ^ 0x6c7967656e657261, v3: k1 ^ 0x7465646279746573,
	}
}

// write adds bytes.
func (h *sipHash) write(b []byte) {
	for _, x := range b {
		h.add(uint64(x))
	}
}

// add adds a byte.
func (h *sipHash) add(x uint64) {
	h.tail |= x << (h.size % 8 * 8)
	if h.size++; h.size%8 == 0 {
		h.v0, h.v1, h.v2, h.v3 = sipBlock(h.v0, h.v1, h.v2, h.v3, h.tail)
		h.tail = 0
	}
}

// text adds a text as appendKeyText encodes it.
func (h *sipHash) text(s string, flag uint64) {
	if n := uint64(len(s)) << 1; n < 0x80 {
		h.add(n | flag)
	} else {
		h.write(binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64), n|flag))
	}
	v0, v1, v2, v3, tail := h.v0, h.v1, h.v2, h.v3, h.tail
	used := h.size % 8 * 8 // bits of tail; those shifted out of it begin the next one
	h.size += uint64(len(s))
	for len(s) >= 8 {
		m := eightBytes(s)
		block := tail | m<<(used&63)
		v3 ^= block // as sipBlock, which the compiler would call
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= block
		tail = m >> 1 >> ((63 - used) & 63)
		s = s[8:]
	}
	m := fewBytes(s)
	tail |= m << (used & 63)
	if used+uint64(len(s))*8 >= 64 {
		v0, v1, v2, v3 = sipBlock(v0, v1, v2, v3, tail)
		tail = m >> 1 >> ((63 - used) & 63)
	}
	h.v0, h.v1, h.v2, h.v3, h.tail = v0, v1, v2, v3, tail
}

// sum returns the first word of the hash, and does not change it.
func (h *sipHash) sum() uint64 {
	v0, v1, v2, v3 := sipBlock(h.v0, h.v1, h.v2, h.v3, h.tail|h.size<<56)
	v2 ^= 0xee
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

// sipBlock adds a block of eight bytes.
func sipBlock(v0, v1, v2, v3, m uint64) (a, b, c, d uint64) {
	v3 ^= m
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ m, v1, v2, v3
}

func sipRound(v0, v1, v2, v3 uint64) (a, b, c, d uint64) {
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

// eightBytes returns the first eight bytes of a text.
func eightBytes(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// fewBytes returns the bytes of a text of less than eight.
func fewBytes(s string) uint64 {
	n := len(s)
	if n >= 4 { // the halves overlap in equal bytes
		t := s[n-4:]
		return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			(uint64(t[0])|uint64(t[1])<<8|uint64(t[2])<<16|uint64(t[3])<<24)<<((n-4)*8&63)
	}
	if n == 0 {
		return 0
	}
	return uint64(s[0]) | uint64(s[n/2])<<(n/2*8&63) | uint64(s[n-1])<<((n-1)*8&63)
}
