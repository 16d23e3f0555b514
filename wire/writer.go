package wire

import (
	"encoding/binary"
	"slices"

	"github.com/georld/rld/crdt"
)

// flag returns the bit if it is set, 0 otherwise.
func flag(bit byte, set bool) byte {
	if set {
		return bit
	}
	return 0
}

func (e *Encoder) byte(b byte) { e.b = append(e.b, b) }

func (e *Encoder) uint(v uint64) {
	if v < 0x80 {
		e.b = append(e.b, byte(v))
		return
	}
	e.b = binary.AppendUvarint(e.b, v)
}

// optional writes a number unless it is 0.
func (e *Encoder) optional(v uint64) {
	if v != 0 {
		e.uint(v)
	}
}

// word writes 8 bytes.
func (e *Encoder) word(v uint64) { e.b = binary.LittleEndian.AppendUint64(e.b, v) }

func (e *Encoder) key(k crdt.Key) { e.b = appendKey(e.b, k) }

// column writes the numbers.
func (e *Encoder) column(numbers []uint64) {
	b := slices.Grow(e.b, len(numbers))
	for _, v := range numbers {
		if v < 0x80 {
			b = append(b, byte(v))
		} else {
			b = binary.AppendUvarint(b, v)
		}
	}
	e.b = b
}

// incarnation writes the number of an incarnation in the frame and, the first
// time, its value.
func (e *Encoder) incarnation(s crdt.Incarnation) {
	switch s {
	case e.from:
		e.byte(0)
		return
	case e.to:
		e.byte(1)
		return
	}
	i := e.incarnations.find(&s)
	if i >= 0 {
		e.uint(uint64(i) + 2)
		return
	}
	e.uint(uint64(e.incarnations.add(&s)) + 2)
	e.word(uint64(s))
}

func appendKey(b []byte, k crdt.Key) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(k))
}
