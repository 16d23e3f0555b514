package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Contents is the content of a journal.
type Contents struct {
	// Records are all records in order. The caller owns them.
	Records [][]byte
	// New is true when no record was ever stored: there was no file, or one
	// without records.
	New bool
	// Cut is the batch that was torn and cut off, nil for none.
	Cut *Cut
}

// Cut describes the bytes cut off the end of a file: Append had not returned
// for them.
type Cut struct {
	Offset, Bytes int64
	Why           string
}

// parse returns the content of a file. Its records share memory with data. The
// error is a *ForeignError or a *DamagedError.
func parse(file string, data []byte, owner Owner) (*Contents, error) {
	begun, at, err := parseHeader(file, data, owner)
	if err != nil {
		return nil, err
	}
	c := new(Contents)
	number := uint64(0)
	for ; at < len(data); number++ {
		end, fault := c.batch(data, at, number)
		if fault == "" {
			at = end
			continue
		}
		if int64(at) < begun || !torn(data, at, number) {
			return nil, &DamagedError{File: file, Offset: int64(at), What: fault}
		}
		if next := later(data, at, number); next >= 0 {
			fault = fmt.Sprintf("%s, and a later batch follows at byte %d", fault, next)
			return nil, &DamagedError{File: file, Offset: int64(at), What: fault}
		}
		c.Cut = &Cut{Offset: int64(at), Bytes: int64(len(data) - at), Why: fault}
		break
	}
	if c.Cut == nil && int64(at) < begun {
		return nil, &DamagedError{File: file, Offset: int64(at), What: fmt.Sprintf("the file ends, want at least %d bytes", begun)}
	}
	c.New = number == 0
	return c, nil
}

// parseHeader returns the initial size of the file and the position of its
// first batch.
func parseHeader(file string, data []byte, owner Owner) (int64, int, error) {
	damaged := func(format string, args ...any) (int64, int, error) {
		return 0, 0, &DamagedError{File: file, What: fmt.Sprintf(format, args...)}
	}
	foreign := func(format string, args ...any) (int64, int, error) {
		return 0, 0, &ForeignError{File: file, What: fmt.Sprintf(format, args...)}
	}
	n := len(data)
	if n == 0 {
		return damaged("it is empty, want at least %d bytes", headSize)
	}
	if known := min(n, len(magic)); string(data[:known]) != magic[:known] {
		return foreign("it is no journal: it begins with %q, want %q", data[:known], magic[:known])
	}
	if n < headSize {
		return damaged("its header is cut after %d bytes, want at least %d", n, headSize)
	}
	if v := binary.LittleEndian.Uint32(data[headVersion:]); v != version {
		return foreign("it has version %d, want %d: it is of another release", v, version)
	}
	size := uint64(headSize) + uint64(binary.LittleEndian.Uint32(data[headName:]))
	if size > uint64(n) {
		return damaged("its header has %d bytes of %d", n, size)
	}
	h := data[:size]
	got := crc32.Checksum(h[headBegun:], castagnoli)
	if want := binary.LittleEndian.Uint32(h[headChecksum:]); got != want {
		return damaged("its header has checksum %08x, want %08x", got, want)
	}
	cluster, name := binary.LittleEndian.Uint64(h[headCluster:]), h[headSize:]
	switch {
	case cluster != owner.Cluster:
		return foreign("it is from another cluster: it names %016x, want %016x", cluster, owner.Cluster)
	case string(name) != owner.Name:
		return foreign("it is of daemon %q, want that of %q", name, owner.Name)
	}
	return int64(binary.LittleEndian.Uint64(h[headBegun:])), int(size), nil
}

// batch appends the records of the batch at at, and returns its end. On a fault
// it returns that and appends none.
func (c *Contents) batch(data []byte, at int, number uint64) (int, string) {
	h, ok := headAt(data, at)
	switch {
	case len(data)-at < batchSize:
		return 0, fmt.Sprintf("the head of a batch has %d bytes, want %d", len(data)-at, batchSize)
	case !ok:
		return 0, "no batch begins where one has to"
	case h.number != number:
		return 0, fmt.Sprintf("batch %d, want %d", h.number, number)
	}
	from := at + batchSize
	if left := len(data) - from; left < h.length+1 {
		return 0, fmt.Sprintf("a batch has %d bytes after its head, want %d", left, h.length+1)
	}
	records, end := data[from:from+h.length], from+h.length
	if got := crc32.Checksum(records, castagnoli); got != h.checksum {
		return 0, fmt.Sprintf("a batch has checksum %08x, want %08x", got, h.checksum)
	}
	if data[end] != mark {
		return 0, fmt.Sprintf("a batch ends with %#x, want %#x", data[end], mark)
	}
	all, ok := splitRecords(c.Records, records)
	if !ok {
		return 0, "the lengths of a batch's records are none"
	}
	c.Records = all
	return end + 1, ""
}

// torn reports whether the write of the batch with this number at at may be
// incomplete: it is cut short, or a sector of it was never written.
func torn(data []byte, at int, number uint64) bool {
	h, ok := headAt(data, at)
	switch {
	case !ok:
		return len(data)-at < batchSize || missing(data, at, at+batchSize)
	case h.number != number:
		return false
	}
	end := at + batchSize + h.length + 1
	return end > len(data) || missing(data, at+batchSize, end)
}

// sectorBytes is the unit that a disk writes completely or not at all.
const sectorBytes = 512

// missing reports whether all bytes of [from, to) in some sector are zero.
func missing(data []byte, from, to int) bool {
	for from < to {
		end := min(to, (from/sectorBytes+1)*sectorBytes)
		if len(bytes.Trim(data[from:end], "\x00")) == 0 {
			return true
		}
		from = end
	}
	return false
}

// later returns the position of a batch after at with a greater number, -1 for
// none.
func later(data []byte, at int, number uint64) int {
	for at++; ; at++ {
		next := bytes.IndexByte(data[at:], mark)
		if next < 0 {
			return -1
		}
		at += next
		if h, ok := headAt(data, at); ok && h.number > number {
			return at
		}
	}
}
