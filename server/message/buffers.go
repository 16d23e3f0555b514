package message

import (
	"sync"

	"google.golang.org/grpc/mem"
)

// The capacity of a new buffer, and the one above which a used buffer is not
// kept. The first is above the size from which gRPC gives buffers back.
const (
	newBuffer = 4 << 10
	maxBuffer = 128 << 10
)

// Buffers is a pool of byte slices for Encoded messages: gRPC gives a buffer
// back when its bytes are on the wire, which is after sending returned. The
// zero value is ready; it is safe for concurrent use.
type Buffers struct{ pool sync.Pool }

var _ mem.BufferPool = (*Buffers)(nil)

// Get returns a buffer of a length. Take one of length 0 to append to.
func (p *Buffers) Get(length int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		if cap(*b) >= length {
			*b = (*b)[:length]
			return b
		}
		p.pool.Put(b)
	}
	b := make([]byte, length, max(length, newBuffer))
	return &b
}

// Put takes a buffer back.
func (p *Buffers) Put(b *[]byte) {
	if cap(*b) <= maxBuffer {
		p.pool.Put(b)
	}
}
