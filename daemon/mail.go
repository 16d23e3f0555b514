package daemon

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/wire"
)

// mail sends what is said about strict keys. What there is to say to one daemon
// while a frame to it is being made, or while its stream takes no more, goes into
// the next one. It is safe for concurrent use and never waits.
type mail struct {
	send func(to crdt.Incarnation, frame []byte) bool

	mu    sync.Mutex
	boxes map[crdt.Incarnation]*box

	sent, dropped atomic.Uint64 // frames, items
}

// box is what is to be said to one daemon.
type box struct {
	mu    sync.Mutex
	queue []sticky.Message // that could not be joined, bounded by maxQueued
	items int
	busy  bool // somebody sends, or will
	tries int
	// tick is the millisecond of the last frame, and frames how many went in it.
	tick   time.Time
	frames int
}

const (
	// maxBoxes bounds the daemons that something is kept for.
	maxBoxes = 4_096
	// maxQueued bounds the items that wait for one.
	maxQueued = 4 * sticky.MaxItems
	// sendAgain is after how long a frame is offered again to a stream that had
	// no room for it, and sendTries how often. Who waits for an answer does not
	// wait much longer than both together.
	sendAgain = time.Millisecond
	sendTries = 50
	// perTick is how many frames go to one daemon in a millisecond: what there is
	// more to say waits for the next one, and shares frames.
	perTick = 10
)

func newMail(send func(to crdt.Incarnation, frame []byte) bool) *mail {
	return &mail{send: send, boxes: map[crdt.Incarnation]*box{}}
}

// post sends a message, which it takes over.
func (l *mail) post(m sticky.Message) {
	b := l.box(m.To)
	b.mu.Lock()
	if !b.add(m) {
		b.mu.Unlock()
		l.dropped.Add(uint64(itemsOf(&m)))
		return
	}
	if b.busy {
		b.mu.Unlock()
		return
	}
	b.busy = true
	l.flush(b)
}

// box returns the one of a daemon.
func (l *mail) box(of crdt.Incarnation) *box {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.boxes[of]
	if b == nil {
		if len(l.boxes) >= maxBoxes {
			clear(l.boxes) // who has one still sends what is in it
		}
		b = &box{}
		l.boxes[of] = b
	}
	return b
}

// flush sends what is in a box, which is locked and busy, and unlocks it.
func (l *mail) flush(b *box) {
	for len(b.queue) > 0 {
		if wait := b.pause(time.Now()); wait > 0 {
			b.mu.Unlock()
			time.AfterFunc(wait, func() {
				b.mu.Lock()
				l.flush(b)
			})
			return
		}
		m := b.queue[0]
		b.queue[0] = sticky.Message{}
		b.queue = b.queue[1:]
		b.items -= itemsOf(&m)
		b.mu.Unlock()
		gone := l.offer(&m)
		b.mu.Lock()
		if gone {
			b.tries = 0
			continue
		}
		if b.tries++; b.tries >= sendTries {
			b.tries = 0
			l.dropped.Add(uint64(itemsOf(&m)))
			continue
		}
		b.items += itemsOf(&m)
		b.queue = append([]sticky.Message{m}, b.queue...)
		b.mu.Unlock()
		time.AfterFunc(sendAgain, func() {
			b.mu.Lock()
			l.flush(b)
		})
		return
	}
	b.queue, b.busy = nil, false
	b.mu.Unlock()
}

// pause counts a frame, and returns how long to wait before there may be another.
func (b *box) pause(now time.Time) time.Duration {
	if passed := now.Sub(b.tick); passed < 0 || passed >= time.Millisecond {
		b.tick, b.frames = now, 0
	}
	if b.frames >= perTick {
		return b.tick.Add(time.Millisecond).Sub(now)
	}
	b.frames++
	return 0
}

// offer hands a message to the stream of its receiver, if there is room. What
// cannot be encoded is dropped.
func (l *mail) offer(m *sticky.Message) bool {
	frame, err := wire.EncodeStrict(nil, m)
	if err != nil {
		l.dropped.Add(uint64(itemsOf(m)))
		return true
	}
	if l.send(m.To, frame) {
		l.sent.Add(1)
		return true
	}
	return false
}

// add puts a message into the box, joined with the last one where that goes. It
// returns false when there is no room.
func (b *box) add(m sticky.Message) bool {
	n := itemsOf(&m)
	if b.items+n > maxQueued && b.items > 0 {
		return false
	}
	b.items += n
	if last := len(b.queue) - 1; last >= 0 && join(&b.queue[last], &m) {
		return true
	}
	b.queue = append(b.queue, m)
	return true
}

// itemsOf counts what a message says.
func itemsOf(m *sticky.Message) int {
	return len(m.Requests) + len(m.Grants) + len(m.Accepts) + len(m.Accepted) + len(m.SnapshotRequests) + len(m.SnapshotChunks) + len(m.Layouts)
}

// join adds what a message says to another one to the same daemon. It reports
// whether both fit.
func join(to, m *sticky.Message) bool {
	if to.From != m.From || to.To != m.To || to.Number != m.Number || to.Voting != m.Voting || to.Generation != m.Generation ||
		len(to.Requests)+len(m.Requests) > sticky.MaxItems || len(to.Grants)+len(m.Grants) > sticky.MaxItems ||
		len(to.Accepts)+len(m.Accepts) > sticky.MaxItems || len(to.Accepted)+len(m.Accepted) > sticky.MaxItems ||
		len(to.SnapshotRequests)+len(m.SnapshotRequests) > sticky.MaxItems ||
		len(to.SnapshotChunks)+len(m.SnapshotChunks)+len(to.Layouts)+len(m.Layouts) > 0 {
		return false
	}
	to.Stamp = max(to.Stamp, m.Stamp)
	to.Requests = append(to.Requests, m.Requests...)
	to.Grants = append(to.Grants, m.Grants...)
	to.Accepts = append(to.Accepts, m.Accepts...)
	to.Accepted = append(to.Accepted, m.Accepted...)
	to.SnapshotRequests = append(to.SnapshotRequests, m.SnapshotRequests...)
	return true
}
