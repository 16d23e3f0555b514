package journal

import (
	"encoding/binary"
	"hash/crc32"
)

// The offsets of the file header's fields, and its size without the name.
const (
	magic   = "rldjrnl\n"
	version = 1

	headVersion  = 8
	headChecksum = 12
	headBegun    = 16
	headCluster  = 24
	headName     = 32
	headSize     = 36
)

// The offsets of the batch header's fields, and its size. A mark follows the
// records, too.
const (
	mark = 0xe1

	batchLength  = 1
	batchNumber  = 5
	batchRecords = 13
	batchHead    = 17
	batchSize    = 21

	// leastBatch is the size of a batch without records.
	leastBatch = batchSize + 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendHeader appends the header of a file with an initial size.
func appendHeader(b []byte, owner Owner, begun int64) []byte {
	at := len(b)
	b = append(b, make([]byte, headSize)...)
	b = append(b, owner.Name...)
	h := b[at:]
	copy(h, magic)
	binary.LittleEndian.PutUint32(h[headVersion:], version)
	binary.LittleEndian.PutUint64(h[headBegun:], uint64(begun))
	binary.LittleEndian.PutUint64(h[headCluster:], owner.Cluster)
	binary.LittleEndian.PutUint32(h[headName:], uint32(len(owner.Name)))
	binary.LittleEndian.PutUint32(h[headChecksum:], crc32.Checksum(h[headBegun:], castagnoli))
	return b
}

// openBatch reserves the room for the header of a batch, appendRecord appends a
// record, and closeBatch completes the batch with this number that starts at
// at.

func openBatch(b []byte) []byte { return append(b, make([]byte, batchSize)...) }

func appendRecord(b, record []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(record))), record...)
}

func closeBatch(b []byte, at int, number uint64) []byte {
	h, records := b[at:at+batchSize], b[at+batchSize:]
	h[0] = mark
	binary.LittleEndian.PutUint32(h[batchLength:], uint32(len(records)))
	binary.LittleEndian.PutUint64(h[batchNumber:], number)
	binary.LittleEndian.PutUint32(h[batchRecords:], crc32.Checksum(records, castagnoli))
	binary.LittleEndian.PutUint32(h[batchHead:], crc32.Checksum(h[:batchHead], castagnoli))
	return append(b, mark)
}

// head is the header of a batch.
type head struct {
	length   int
	number   uint64
	checksum uint32
}

// headAt returns the header of the batch that starts at at, if there is one.
func headAt(data []byte, at int) (head, bool) {
	if len(data)-at < batchSize || data[at] != mark {
		return head{}, false
	}
	h := data[at : at+batchSize]
	if crc32.Checksum(h[:batchHead], castagnoli) != binary.LittleEndian.Uint32(h[batchHead:]) {
		return head{}, false
	}
	return head{
		length:   int(binary.LittleEndian.Uint32(h[batchLength:])),
		number:   binary.LittleEndian.Uint64(h[batchNumber:]),
		checksum: binary.LittleEndian.Uint32(h[batchRecords:]),
	}, true
}

// splitRecords appends the records of a batch to to, and reports whether the
// batch consists of records. They share memory with b.
func splitRecords(to [][]byte, b []byte) ([][]byte, bool) {
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return to, false
		}
		end := n + int(size)
		to = append(to, b[n:end:end])
		b = b[end:]
	}
	return to, true
}
