package simdisk

import (
	"math/rand/v2"
	"slices"
)

// sectorBytes is the unit that a disk writes completely or not at all.
const sectorBytes = 512

// file is the content of a file, whatever its names are.
type file struct {
	data    []byte // as processes see it
	durable []byte // as a power loss leaves it at least
	dirty   int    // data is durable before this offset
}

// newFile returns a file whose content is durable.
func newFile(data []byte) *file {
	return &file{data: slices.Clone(data), durable: slices.Clone(data), dirty: len(data)}
}

// write writes at an offset, which is at most the size of the file.
func (f *file) write(b []byte, at int) {
	f.dirty = min(f.dirty, at)
	n := copy(f.data[at:], b)
	f.data = append(f.data, b[n:]...)
}

// settle makes the content durable.
func (f *file) settle() {
	if hole := f.dirty - len(f.durable); hole > 0 { // left by a failed sync
		f.durable = append(f.durable, make([]byte, hole)...)
	}
	f.durable = append(f.durable[:f.dirty], f.data[f.dirty:]...)
	f.dirty = len(f.data)
}

// failSync makes some sectors durable. A later sync does not write the others
// either: the system considers them written, and processes go on seeing them.
func (f *file) failSync(rng *rand.Rand) {
	f.durable = f.survivor(rng, 500_000)
	f.dirty = len(f.data)
}

// losePower keeps the durable sectors, and of the others a share in parts per
// million.
func (f *file) losePower(rng *rand.Rand, ppm int) {
	if f.dirty < len(f.data) {
		f.durable = f.survivor(rng, ppm)
	}
	f.data = slices.Clone(f.durable)
	f.dirty = len(f.data)
}

// survivor returns the durable content with some in a million of the sectors
// that are not durable.
func (f *file) survivor(rng *rand.Rand, ppm int) []byte {
	out := slices.Clone(f.durable)
	for from := f.dirty / sectorBytes * sectorBytes; from < len(f.data); from += sectorBytes {
		end := min(from+sectorBytes, len(f.data))
		if rng.IntN(1_000_000) >= ppm {
			continue
		}
		if len(out) < end {
			out = append(out, make([]byte, end-len(out))...)
		}
		copy(out[from:end], f.data[from:end])
	}
	if ppm > 0 && len(out) < len(f.data) && rng.IntN(4) == 0 { // the size arrived without the content
		out = append(out, make([]byte, len(f.data)-len(out))...)
	}
	return out
}
