package api

import (
	"context"
	"sync"

	"github.com/georld/rld/server/message"
)

// unsentFrom is the size from which the answers count that gRPC has taken over
// and not sent: those of a client that reads them are sent at once.
const unsentFrom = 32 << 10

// unsent counts the answers of a stream that gRPC has not sent, as bytes that
// its connection holds. It is the pool of their buffers, which gRPC gives back
// when their bytes are on the wire.
type unsent struct {
	*message.Buffers
	ctx context.Context // of the stream

	mu      sync.Mutex
	bytes   int
	release func() // of what the connection holds, nil for nothing
	held    int
	ended   bool
}

// encode returns answers as a message.
func (u *unsent) encode(answers *[]byte) *message.Encoded {
	u.add(cap(*answers))
	return message.EncodeFrom(answers, u)
}

// Put takes a buffer back.
func (u *unsent) Put(b *[]byte) {
	u.add(-cap(*b))
	u.Buffers.Put(b)
}

// add adds bytes, or takes them off.
func (u *unsent) add(bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return
	}
	u.bytes += bytes
	if u.bytes >= unsentFrom {
		u.holdLocked(u.bytes)
	} else {
		u.holdLocked(0)
	}
}

// end ends the count: the stream is over.
func (u *unsent) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	u.holdLocked(0)
}

func (u *unsent) holdLocked(bytes int) {
	if bytes == u.held {
		return
	}
	if u.release != nil {
		u.release()
	}
	u.release, u.held = nil, bytes
	if bytes > 0 {
		u.release = message.Hold(u.ctx, bytes)
	}
}
