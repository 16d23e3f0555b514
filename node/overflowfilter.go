package node

import "github.com/georld/rld/crdt"

// spill remembers which keys an overflow counter has counted, as one bit a
// key out of spillBits: a key that is asked for is always found, and another
// by chance, which may refuse it falsely. The zero value is empty.
type spill struct{ bits []uint64 }

const spillBits = 1 << 16

func (s *spill) add(k crdt.Key) {
	if s.bits == nil {
		s.bits = make([]uint64, spillBits/64)
	}
	i := k.Hi >> 48 // 16 bits that neither shard nor index use
	s.bits[i/64] |= 1 << (i % 64)
}

func (s *spill) has(k crdt.Key) bool {
	i := k.Hi >> 48
	return s.bits != nil && s.bits[i/64]&(1<<(i%64)) != 0
}

// clear forgets all keys.
func (s *spill) clear() { s.bits = nil }
