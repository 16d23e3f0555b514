package wire

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/georld/rld/crdt"
)

// The fields of protobuf, written by an encoder. Zero fields are left out.

func (e *Encoder) uint(t tag, v uint64) {
	if v != 0 {
		e.b = binary.AppendUvarint(append(e.b, byte(t)), v)
	}
}

// word writes 8 bytes.
func (e *Encoder) word(t tag, v uint64) {
	if v != 0 {
		e.b = binary.LittleEndian.AppendUint64(append(e.b, byte(t)), v)
	}
}

func (e *Encoder) flag(t tag, v bool) {
	if v {
		e.b = append(e.b, byte(t), 1)
	}
}

// open starts a field with a length and returns the argument of close.
func (e *Encoder) open(t tag) int {
	e.b = append(e.b, byte(t), 0)
	return len(e.b)
}

// close ends the field that open started: it inserts the length, and moves the
// content when that needs more than the one byte reserved for it.
func (e *Encoder) close(at int) {
	size := len(e.b) - at
	if size < 0x80 {
		e.b[at-1] = byte(size)
		return
	}
	if extra := varintSize(uint64(size)) - 1; extra > 0 {
		e.b = slices.Grow(e.b, extra)[:len(e.b)+extra]
		copy(e.b[at+extra:], e.b[at:at+size])
	}
	binary.PutUvarint(e.b[at-1:], uint64(size))
}

// column writes the numbers, or nothing when all are 0.
func (e *Encoder) column(t tag, numbers []uint64) {
	for _, v := range numbers {
		if v != 0 {
			e.required(t, numbers)
			return
		}
	}
}

// required writes the numbers, or nothing when there are none.
func (e *Encoder) required(t tag, numbers []uint64) {
	if len(numbers) == 0 {
		return
	}
	at := e.open(t)
	b := slices.Grow(e.b, len(numbers))
	for _, v := range numbers {
		if v < 0x80 {
			b = append(b, byte(v))
		} else {
			b = binary.AppendUvarint(b, v)
		}
	}
	e.b = b
	e.close(at)
}

// words writes incarnations, 8 bytes each.
func (e *Encoder) words(t tag, incarnations []crdt.Incarnation) {
	if len(incarnations) == 0 {
		return
	}
	at := e.open(t)
	for _, s := range incarnations {
		e.b = binary.LittleEndian.AppendUint64(e.b, uint64(s))
	}
	e.close(at)
}

func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
