package link

import (
	"sync/atomic"

	"github.com/georld/rld/wire"
)

// The bounds of what waits for a stream.
const (
	queueFrames = 64
	queueBytes  = wire.MaxFrameBytes
)

// outbox is the queue of one outgoing stream. Frames of a stream that ended
// are not kept for the next one: they would be old news.
type outbox struct {
	target   *target
	hello    Hello    // who is at the other end
	priority priority // beside the stream

	frames chan []byte
	bytes  atomic.Int64 // of frames
}

func newOutbox(t *target, h Hello) *outbox {
	return &outbox{target: t, hello: h, frames: make(chan []byte, queueFrames)}
}

// put takes over a frame and reports whether there was room. It never waits.
func (o *outbox) put(frame []byte) bool {
	size := int64(len(frame))
	if size == 0 || size > wire.MaxFrameBytes {
		return false
	}
	if o.bytes.Add(size) > queueBytes {
		o.bytes.Add(-size)
		return false
	}
	select {
	case o.frames <- frame:
		return true
	default:
		o.bytes.Add(-size)
		return false
	}
}

// taken says that a frame has left the queue.
func (o *outbox) taken(frame []byte) { o.bytes.Add(-int64(len(frame))) }

// rest empties the queue and returns how many frames were in it.
func (o *outbox) rest() int {
	for n := 0; ; n++ {
		select {
		case frame := <-o.frames:
			o.taken(frame)
		default:
			return n
		}
	}
}
