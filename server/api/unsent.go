package api

import (
	"context"
	"slices"
	"sync"

	"github.com/georld/rld/server/message"
)

// unsentFrom is the size from which the answers count that gRPC has taken over
// and not sent: those of a client that reads them are sent at once.
const unsentFrom = 32 << 10

// smallAnswers is the size of answers that are not worth a buffer of the pool.
const smallAnswers = 1 << 10

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
	// cancelled reports that the stream was when it ended: gRPC need not give
	// all buffers back then.
	cancelled bool
}

// encode returns answers as a message. Few of them do not keep a buffer while
// others are not sent.
func (u *unsent) encode(answers *[]byte) *message.Encoded {
	if len(*answers) <= smallAnswers && u.add(0) {
		small := message.Encode(slices.Clone(*answers))
		u.Buffers.Put(answers)
		return small
	}
	u.add(cap(*answers))
	return message.EncodeFrom(answers, u)
}

// Put takes a buffer back.
func (u *unsent) Put(b *[]byte) {
	u.add(-cap(*b))
	u.Buffers.Put(b)
}

// add adds bytes, or takes them off, and reports whether what there is counts.
func (u *unsent) add(bytes int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes += bytes
	if counts := u.ended || u.bytes >= unsentFrom; counts && !u.cancelled {
		u.holdLocked(u.bytes)
	} else {
		u.holdLocked(0)
	}
	return u.held > 0
}

// end is called when the handler of the stream ends. gRPC keeps what it has not
// sent until the client reads it or cancels the call.
func (u *unsent) end() {
	u.mu.Lock()
	u.ended, u.cancelled = true, u.ctx.Err() != nil
	u.mu.Unlock()
	u.add(0)
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
