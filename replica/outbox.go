package replica

import (
	"maps"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
)

const (
	// maxBoxes bounds the daemons that messages wait for, and maxQueued is the
	// default of Config.MaxQueued.
	maxBoxes  = 4_096
	maxQueued = 4 * sticky.MaxItems
	// sendAgain is the time after which a frame is offered again to a stream
	// that had no room for it, and sendTries how often. Both together are about
	// as long as a call waits for an answer.
	sendAgain = time.Millisecond
	sendTries = 50
	// perTick bounds the frames to one daemon in a millisecond. More messages
	// wait for the next one and share frames.
	perTick = 10
)

// Outbox holds the messages about strict keys that wait for a frame. Messages
// to a busy peer are merged into its next frame: one is made already, its
// stream has no room, or it got perTick frames in this millisecond.
type Outbox struct {
	boxes   map[crdt.Incarnation]*box
	most    int           // items that wait for one daemon
	paused  time.Duration // when the first box goes on, never for none
	sent    uint64        // frames
	dropped uint64        // items
}

// box holds the messages to one daemon.
type box struct {
	queue []sticky.Message // that could not be merged, bounded by Config.MaxQueued
	items int
	busy  bool          // a driver sends the queue, or will
	due   time.Duration // when it goes on, 0: now
	tries int
	// tick is the begin of the millisecond of the latest frame, and frames how
	// many it had.
	tick   time.Duration
	frames int
}

func newOutbox(most int) *Outbox {
	return &Outbox{boxes: map[crdt.Incarnation]*box{}, most: most, paused: never}
}

// Sent returns how many frames were sent, Dropped how many items were not.
func (o *Outbox) Sent() uint64 { return o.sent }

// Dropped returns how many items were not sent.
func (o *Outbox) Dropped() uint64 { return o.dropped }

// Post adds a message, which the outbox owns from now on. When it returns true
// the caller sends all messages that Next returns.
func (o *Outbox) Post(m sticky.Message) bool {
	b := o.box(m.To)
	if b == nil || !b.add(m, o.most) {
		o.dropped += itemsOf(&m)
		return false
	}
	idle := !b.busy
	b.busy = true
	return idle
}

// box returns the box of a daemon, nil when there are too many.
func (o *Outbox) box(of crdt.Incarnation) *box {
	b := o.boxes[of]
	if b != nil {
		return b
	}
	if len(o.boxes) >= maxBoxes {
		maps.DeleteFunc(o.boxes, func(_ crdt.Incarnation, b *box) bool { return !b.busy })
	}
	if len(o.boxes) >= maxBoxes {
		return nil
	}
	b = &box{}
	o.boxes[of] = b
	return b
}

// Next returns the next message to a daemon that Post or Ready.Flush named. The
// caller sends it and calls Done. It returns false when there is none, or none
// before Ready.Flush names the daemon.
func (o *Outbox) Next(at time.Duration, to crdt.Incarnation) (sticky.Message, bool) {
	b := o.boxes[to]
	switch {
	case b.due != 0:
		return sticky.Message{}, false
	case len(b.queue) == 0:
		b.queue, b.busy = nil, false
		return sticky.Message{}, false
	}
	if at-b.tick >= time.Millisecond {
		b.tick, b.frames = at, 0
	}
	if b.frames >= perTick {
		o.pause(b, b.tick+time.Millisecond)
		return sticky.Message{}, false
	}
	b.frames++
	m := b.queue[0]
	b.queue = b.queue[1:]
	b.items -= int(itemsOf(&m))
	return m, true
}

// Done notes what became of a message that Next returned: it was sent, the
// stream had no room for it, or it cannot be encoded.
func (o *Outbox) Done(at time.Duration, m *sticky.Message, sent bool, err error) {
	b := o.boxes[m.To]
	switch {
	case sent:
		o.sent++
		b.tries = 0
	case err != nil || b.tries+1 >= sendTries:
		o.dropped += itemsOf(m)
		b.tries = 0
	default:
		b.tries++
		b.items += int(itemsOf(m))
		b.queue = slices.Insert(b.queue, 0, *m)
		o.pause(b, at+sendAgain)
	}
}

func (o *Outbox) pause(b *box, until time.Duration) {
	b.due = until
	o.paused = min(o.paused, until)
}

// tick returns the daemons whose boxes go on, in ascending order. The first one
// does at paused.
func (o *Outbox) tick(at time.Duration) []crdt.Incarnation {
	o.paused = never
	var out []crdt.Incarnation
	for to, b := range o.boxes {
		switch {
		case b.due == 0:
		case b.due <= at:
			b.due = 0
			out = append(out, to)
		default:
			o.paused = min(o.paused, b.due)
		}
	}
	slices.Sort(out)
	return out
}

// add puts a message into the box, merged with the last one where possible. It
// reports whether there is room for its items among most. An empty box has room
// for any message: one with a layout has two items at least.
func (b *box) add(m sticky.Message, most int) bool {
	n := int(itemsOf(&m))
	if b.items > 0 && b.items+n > most {
		return false
	}
	b.items += n
	if last := len(b.queue) - 1; last < 0 || !merge(&b.queue[last], &m) {
		b.queue = append(b.queue, m)
	}
	return true
}

// itemsOf counts the items of a message.
func itemsOf(m *sticky.Message) uint64 {
	return uint64(len(m.Requests) + len(m.Grants) + len(m.Accepts) + len(m.Accepted) +
		len(m.SnapshotRequests) + len(m.SnapshotChunks) + len(m.Layouts))
}

// merge adds the items of m to another message of the process to the same
// daemon. It reports whether both fit.
func merge(to, m *sticky.Message) bool {
	if to.Number != m.Number ||
		len(to.SnapshotChunks)+len(m.SnapshotChunks)+len(to.Layouts)+len(m.Layouts) > 0 {
		return false
	}
	if max(len(to.Requests)+len(m.Requests), len(to.Grants)+len(m.Grants), len(to.Accepts)+len(m.Accepts),
		len(to.Accepted)+len(m.Accepted), len(to.SnapshotRequests)+len(m.SnapshotRequests)) > sticky.MaxItems {
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
