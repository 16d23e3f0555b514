package grpchost

import (
	"encoding/binary"
	"slices"
	"time"
)

// preface is sent by clients of HTTP/2 before their first frame.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// The types of frames that matter, the size of a frame's header, and a flag.
const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameHead     = 9
	flagEndStream = 1
	flagPadded    = 8
)

// frames reads the headers of the frames of HTTP/2 that a client sends, in any
// pieces. It checks nothing: gRPC does that after it.
type frames struct {
	left int // bytes to pass over: of the preface, or of a frame
	head [frameHead]byte
	have int // bytes of head

	begun      bool       // the header of the first frame has come
	incomplete []openCall // calls without their last byte, bounded
	bytes      int        // that their unfinished messages hold
	pieces     bool       // a message came in too many pieces
	calls      ages

	// Of the DATA frame that comes.
	call   uint32 // 0 for a frame of another type
	data   int    // bytes of messages to come in it
	padded bool   // its first byte, to come, is how many others pad it
	ending bool   // it ends the call
}

// ages separates old calls from young ones, by their ascending numbers.
type ages struct {
	last, next, old uint32    // begun last, begun at nextAt, and the last old one
	lastAt, nextAt  time.Time // when last began, and when next was the last one
}

// youngCall is the age below which a call is young. One of twice that age is
// old, and one between them either.
const youngCall = 5 * time.Millisecond

// advance makes calls old.
func (a *ages) advance(now time.Time) {
	switch {
	case now.Sub(a.lastAt) >= youngCall:
		a.old = a.last
	case now.Sub(a.nextAt) >= youngCall:
		a.old, a.next, a.nextAt = a.next, a.last, now
	}
}

// begin notes a call.
func (a *ages) begin(call uint32, now time.Time) {
	a.last, a.lastAt = max(a.last, call), now
}

// scan takes the next bytes, which came now. It returns how many young calls
// they cancel.
func (f *frames) scan(b []byte, now time.Time) (cancelled int) {
	f.calls.advance(now)
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, len(b))
			f.payload(b[:n])
			b = b[n:]
			continue
		}
		n := copy(f.head[f.have:], b)
		f.have += n
		b = b[n:]
		if f.have == frameHead {
			f.have = 0
			if f.frame(now) {
				cancelled++
			}
		}
	}
	return cancelled
}

// frame takes the header of a frame and reports whether it cancels a young
// call.
func (f *frames) frame(now time.Time) bool {
	f.begun = true
	f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	kind, flags := f.head[3], f.head[4]
	call := binary.BigEndian.Uint32(f.head[5:]) &^ (1 << 31)
	if kind == frameHeaders {
		f.calls.begin(call, now)
	}
	f.call, f.data, f.padded, f.ending = 0, 0, false, false
	switch {
	case kind == frameData:
		f.call, f.data, f.padded, f.ending = call, f.left, flags&flagPadded != 0, flags&flagEndStream != 0
		if i := f.find(call); i >= 0 && f.left > 0 {
			f.bytes += f.incomplete[i].begin(f.left)
		}
		f.payload(nil) // it may be all there is
	case kind == frameReset, kind == frameHeaders && flags&flagEndStream != 0:
		f.complete(call)
	case kind == frameHeaders && len(f.incomplete) <= maxIncompleteEach:
		f.incomplete = append(f.incomplete, openCall{id: call})
	}
	return kind == frameReset && call > f.calls.old
}

// payload takes the next bytes of a frame.
func (f *frames) payload(b []byte) {
	f.left -= len(b)
	if f.padded && len(b) > 0 {
		f.padded, f.data = false, max(0, f.data-1-int(b[0]))
		b = b[1:]
	}
	b = b[:min(f.data, len(b))]
	f.data -= len(b)
	if i := f.find(f.call); i >= 0 && len(b) > 0 {
		o := &f.incomplete[i]
		before := o.bytes
		if !o.take(b) {
			f.pieces = true
		}
		f.bytes += o.bytes - before
	}
	if f.left == 0 && f.ending {
		f.complete(f.call)
	}
}

// find returns the place of an incomplete call, -1 for another one. It is most
// often the last one.
func (f *frames) find(call uint32) int {
	for i := len(f.incomplete) - 1; i >= 0; i-- {
		if f.incomplete[i].id == call {
			return i
		}
	}
	return -1
}

// complete forgets a call.
func (f *frames) complete(call uint32) {
	if i := f.find(call); i >= 0 {
		f.bytes -= f.incomplete[i].bytes
		f.incomplete = slices.Delete(f.incomplete, i, i+1)
	}
}

// perSecond counts the events of a second.
type perSecond struct {
	since time.Time
	count int
}

// add counts n events of now and returns those of the present second.
func (p *perSecond) add(n int, now time.Time) int {
	if now.Sub(p.since) >= time.Second {
		p.since, p.count = now, 0
	}
	p.count += n
	return p.count
}
