package grpchost

import "encoding/binary"

const (
	// messageHead is the size of what comes before a message: a flag and its
	// length.
	messageHead = 5
	// maxPieces is in how many frames a message may come, and one more for each
	// bytesOfPiece of it: each frame takes about a hundred bytes of memory.
	maxPieces, bytesOfPiece = 4, 256
)

// maxMessage is the size of a message at most.
const maxMessage = 1 << 20

// openCall is a call without its last byte, with the message that comes.
type openCall struct {
	id    uint32
	bytes int // what the frames of an unfinished message hold, 0 between messages

	head       [messageHead]byte
	have       int    // bytes of head
	left, size uint32 // of the message: bytes to come, all bytes
	pieces     uint32
}

// begin takes the start of a DATA frame of n bytes and returns what it adds to
// bytes. gRPC keeps frames in buffers of its sizes, each up to four times as
// large.
func (o *openCall) begin(n int) int {
	o.pieces++
	if o.refused() {
		return 0
	}
	add := 128 + 3*min(n, 4<<10)
	o.bytes += add
	return add
}

// refused reports whether gRPC refuses the message: it keeps nothing of it.
func (o *openCall) refused() bool { return o.size > maxMessage }

// take takes the next bytes of messages. It returns false for a message in too
// many pieces.
func (o *openCall) take(b []byte) bool {
	few := o.pieces <= maxPieces+o.size/bytesOfPiece
	for len(b) > 0 {
		var n int
		if o.have < messageHead {
			n = copy(o.head[o.have:], b)
			if o.have += n; o.have == messageHead {
				o.left = binary.BigEndian.Uint32(o.head[1:])
				if o.size = o.left; o.refused() {
					o.bytes = 0
				}
			}
		} else {
			n = int(min(int64(o.left), int64(len(b))))
			o.left -= uint32(n)
		}
		if !o.refused() {
			o.bytes += n
		}
		b = b[n:]
		if o.have == messageHead && o.left == 0 {
			o.have, o.bytes, o.size, o.pieces = 0, 0, 0, uint32(min(1, len(b)))
		}
	}
	return few
}
