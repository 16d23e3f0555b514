package sticky

import (
	"math/bits"

	"github.com/georld/rld/crdt"
)

// NameHash names a replica of a region in messages and records. It is the same
// on all daemons and over restarts.
func NameHash(name string) uint64 { return hashText("replica", name) }

// hashText hashes texts, each ended by a byte that no name holds, with FNV-1a
// and a finalizer.
func hashText(texts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, t := range texts {
		for i := range len(t) {
			h = (h ^ uint64(t[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	return mix(h)
}

// mix spreads a word over all bits (the finalizer of SplitMix64).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// fold is the word of a key that rendezvous goes by.
func fold(k crdt.Key) uint64 { return mix(k.Hi+0x9e3779b97f4a7c15) ^ k.Lo }

// draw is the uniform number that who has hash name drew for a key.
func draw(key, name uint64) uint64 { return mix(mix(key^name) + 0x9e3779b97f4a7c15) }

// logBits are the binary places of rarity.
const logBits = 24

// rarity returns -log2((u+1)/2^64) in fixed point, to some 2^-18, the same on
// every architecture: how rare a draw as high as u is. Divided by the weight it
// is exponentially distributed with the weight as its rate, so that the least of
// several is each one's in proportion to its weight.
func rarity(u uint64) uint64 {
	if u++; u == 0 {
		return 0
	}
	shift := bits.LeadingZeros64(u)
	x := u << shift // 1 <= x/2^63 < 2
	i, rest := x>>55&0xff, x<<9>>32
	low, high := logs[i], logs[i+1]
	return uint64(shift+1)<<logBits - low - (high-low)*rest>>32
}

// logs holds log2(1 + i/256).
var logs = func() (t [257]uint64) {
	for i := range uint64(256) {
		t[i] = log2(1<<63 + i<<55)
	}
	t[256] = 1 << logBits
	return t
}()

// log2 returns log2(x/2^63) of x from 2^63 on, bit by bit.
func log2(x uint64) uint64 {
	log := uint64(0)
	for range logBits {
		hi, lo := bits.Mul64(x, x)
		log <<= 1
		if hi >= 1<<63 { // the square is 2 or more
			log |= 1
			x = hi
		} else {
			x = hi<<1 | lo>>63
		}
	}
	return log
}
