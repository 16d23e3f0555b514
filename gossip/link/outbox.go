package link

import (
	"sync/atomic"

	"github.com/georld/rld/wire"
)

// Bounds of the queue of a stream.
const (
	queueFrames = 64
	queueBytes  = wire.MaxFrameBytes
)

// outbox is the queue of one outgoing stream. It is dropped with its stream,
// since its frames would be outdated on the next one.
type outbox struct {
	target   *target
	hello    Hello    // of the other end
	proof    proof    // likewise
	priority priority // beside the stream

	frames chan []byte
	bytes  atomic.Int64 // of frames
}

func newOutbox(t *target, h Hello, p proof) *outbox {
	return &outbox{target: t, hello: h, proof: p, frames: make(chan []byte, queueFrames)}
}

// send queues a frame like put, and counts it when there is no room.
func (o *outbox) send(frame []byte) bool {
	if o.put(frame) {
		return true
	}
	o.target.counts.dropped.Add(1)
	o.target.host.counts.dropped.Add(1)
	return false
}

// put queues a frame, takes ownership of it, and reports whether there was
// room. It never waits.
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

// sent frees the room of a frame that has left the queue.
func (o *outbox) sent(frame []byte) { o.bytes.Add(-int64(len(frame))) }

// drain empties the queue and returns the number of frames in it.
func (o *outbox) drain() int {
	for n := 0; ; n++ {
		select {
		case frame := <-o.frames:
			o.sent(frame)
		default:
			return n
		}
	}
}
