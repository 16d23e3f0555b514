// Package rendezvous hashes names and ranks candidates for a key by rendezvous
// (highest random weight) hashing: each candidate draws a number for the key
// and the greatest draw wins. When a candidate comes or goes, only its own keys
// move. Weighted candidates compare Rarity divided by weight and the least
// wins. See Thaler and Ravishankar, "Using name-based mappings to increase hit
// rates" (1998).
//
// All daemons of all versions and architectures must compute the same values,
// so everything is integer arithmetic.
package rendezvous

import (
	"math/bits"

	"github.com/georld/rld/crdt"
)

// golden is 2^64 divided by the golden ratio: an odd constant without pattern.
const golden = 0x9e3779b97f4a7c15

// Hash hashes texts with FNV-1a and a finalizer. Each text is ended by a byte
// that no name contains, so ("ab", "c") and ("a", "bc") differ.
func Hash(texts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, t := range texts {
		for i := range len(t) {
			h = (h ^ uint64(t[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	return Mix(h)
}

// Mix spreads h over all 64 bits: the finalizer of SplitMix64, a bijection.
func Mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// Fold returns the 64 bits of a key that Draw uses.
func Fold(k crdt.Key) uint64 { return Mix(uint64(k) + golden) }

// Draw returns the uniform number that the candidate with hash name draws for
// a folded key.
func Draw(key, name uint64) uint64 { return Mix(Mix(key^name) + golden) }

// logBits is the number of binary places of Rarity.
const logBits = 24

// Rarity returns -log2((u+1)/2^64) in fixed point with an error below 2^-18:
// how rare a draw as high as u is. Rarity divided by a weight is exponentially
// distributed with the weight as its rate, so the least of several candidates
// is each one in proportion to its weight.
func Rarity(u uint64) uint64 {
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

// log2 returns log2(x/2^63) in fixed point, bit by bit, for x of at least 2^63.
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
