package api

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/georld/rld/server/message"
)

// outboxBytes is how many bytes of answers may wait to be sent. The reader of
// a stream stops while there are more, gRPC's flow control then stops the
// client, and so a client that does not read its answers costs this much and
// no more.
const outboxBytes = 32 << 10

// unreadBytes is what a stream may hold that waits for its client, beside the
// frame that is decided: the answers here, and the frames that came after it.
const unreadBytes = outboxBytes + 64<<10

// outbox holds the answers of a stream between its reader, which decides, and
// its sender. As an AnswerFrame is nothing but its answers one after the
// other, what waits is always one frame, whatever number of frames it answers.
//
// Methods are the sender's unless they name the reader. put, fail and paid are
// also for those that answer questions which wait for an owner. None but put
// waits.
type outbox struct {
	mu      sync.Mutex
	room    sync.Cond // pending shrank, or the outbox was shut
	wake    chan struct{}
	drain   <-chan struct{} // closed: no frame may be decided anymore
	buffers *message.Buffers
	ctx     context.Context // of the stream

	waiters int    // for room
	release func() // of what the stream holds meanwhile

	pending *[]byte // nil when nothing waits
	busy    bool    // the reader is deciding a frame
	owed    int     // questions that wait for an owner
	shut    bool    // nobody sends anymore
	ended   bool    // the reader has ended, for this reason:
	err     error
}

func newOutbox(drain <-chan struct{}, buffers *message.Buffers, ctx context.Context) *outbox {
	o := &outbox{wake: make(chan struct{}, 1), drain: drain, buffers: buffers, ctx: ctx}
	o.room.L = &o.mu
	return o
}

// begin is called by the reader before it decides a frame; when it returns
// false, the frame must not be decided.
func (o *outbox) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy = !o.shut && !o.draining()
	return o.busy
}

// put appends an answer, a whole field of an AnswerFrame, and waits for room
// first; how long it waited is added to waited. It returns false when nobody
// will send it.
func (o *outbox) put(answer []byte, waited *time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.full() {
		start := time.Now()
		if o.waiters++; o.waiters == 1 {
			o.release = message.Hold(o.ctx, unreadBytes)
		}
		for o.full() {
			o.signal()
			o.room.Wait()
		}
		if o.waiters--; o.waiters == 0 {
			o.release()
		}
		*waited += time.Since(start)
	}
	if o.shut {
		return false
	}
	if o.pending == nil {
		o.pending = o.buffers.Get(0)
	}
	*o.pending = append(*o.pending, answer...)
	return true
}

// full reports whether the reader has to wait.
func (o *outbox) full() bool {
	return !o.shut && o.pending != nil && len(*o.pending) >= outboxBytes
}

// end is called by the reader after a frame.
func (o *outbox) end() {
	o.mu.Lock()
	o.busy = false
	o.mu.Unlock()
	o.signal()
}

// owe is called by the reader: a question of the frame is answered later.
func (o *outbox) owe() {
	o.mu.Lock()
	o.owed++
	o.mu.Unlock()
}

// paid records that such a question was answered, or never will be.
func (o *outbox) paid() {
	o.mu.Lock()
	o.owed--
	o.mu.Unlock()
	o.signal()
}

// fail ends the stream once what waits is sent: the first reason counts.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	o.ended = true
	if o.err == nil || errors.Is(o.err, io.EOF) {
		o.err = err
	}
	o.mu.Unlock()
}

// finish is called by the reader when it ends, with the reason, nil when the
// client has asked all it wants.
func (o *outbox) finish(err error) {
	o.mu.Lock()
	o.busy, o.ended = false, true
	if o.err == nil {
		o.err = err
	}
	o.mu.Unlock()
	o.signal()
}

// signal wakes the sender.
func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// draining reports whether drain is closed. begin and take ask under the lock,
// so that both sides agree on which frame is the last.
func (o *outbox) draining() bool {
	select {
	case <-o.drain:
		return true
	default:
		return false
	}
}

// take returns what waits, nil for nothing. last is true when there is
// nothing and never will be: no question waits for an owner, and the reader has
// ended, for the reason err, or decides no more frames.
func (o *outbox) take() (answers *[]byte, last bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pending != nil {
		answers, o.pending = o.pending, nil
		o.room.Broadcast()
		return answers, false, nil
	}
	return nil, o.owed == 0 && (o.ended || !o.busy && o.draining()), o.err
}

// abandon records that the sender has ended, and wakes the reader.
func (o *outbox) abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shut = true
	o.room.Broadcast()
}
